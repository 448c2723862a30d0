//! The child of the arms `arena` and `arena-...`: this project's own arena allocator, with each generation's policy.

heaplab::child!(
    "arena" => arena::Arena,
    "arena-3.10" => arena::Arena,
    "arena-3.10-keep0" => arena::Arena,
    "arena-3.9" => arena::Arena,
    "arena-3.8" => arena::Arena,
    "arena-2.5" => arena::Arena,
    "arena-2.4" => arena::Arena,
);
