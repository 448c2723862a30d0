//! The child of the arms `arena`, `arena-3.10` and `arena-3.10-keep0`: this project's own arena allocator.

heaplab::child!(
    "arena" => arena::Arena,
    "arena-3.10" => arena::Arena,
    "arena-3.10-keep0" => arena::Arena,
);
