/* One variant of CPython's obmalloc.c: the file itself, and what a heap needs beside it. Compiled once a variant, with
 *
 *     HEAPLAB_PREFIX   what every external name begins with
 *     HEAPLAB_SOURCE   the file, as it is or as the build script changed it
 *
 * In the same unit the glue sees the file's statics: it calls the object domain's functions without the hop through a
 * table that PyObject_Malloc makes, reads the books, and puts everything back as it was at the start. */
#include "Python.h"
#include HEAPLAB_SOURCE

/* The file declares it and the debug hooks call it. */
void _PyMem_DumpTraceback(int fd, const void *p)
{
    (void)fd;
    (void)p;
}

/* Layout shared with `books.rs`. All size_t, bytes where not said otherwise. */
struct heaplab_books {
    size_t arena_size, pool_size, alignment, threshold;
    size_t arenas_total, arenas_reclaimed, arenas_highwater, arenas_current; /* counts */
    size_t used_pools, unused_pools, blocks, backing_blocks;                 /* counts */
    size_t allocated, available, headers, quantization, arena_alignment;
    size_t bookkeeping;
    size_t radix_tree; /* 0 or 1 */
};

void *HEAPLAB_NAME(malloc)(size_t size) { return _PyObject_Malloc(NULL, size); }

/* As PyObject_Calloc, the check for overflow included. */
void *HEAPLAB_NAME(calloc)(size_t count, size_t size)
{
    if (size != 0 && count > (size_t)PY_SSIZE_T_MAX / size)
        return NULL;
    return _PyObject_Calloc(NULL, count, size);
}

/* As PyObject_Realloc. */
void *HEAPLAB_NAME(realloc)(void *p, size_t size)
{
    if (size > (size_t)PY_SSIZE_T_MAX)
        return NULL;
    return _PyObject_Realloc(NULL, p, size);
}

void HEAPLAB_NAME(free)(void *p) { _PyObject_Free(NULL, p); }

/* A block of the backing that the heap hands out itself, to be freed as any other. */
static void adopt(void) { raw_allocated_blocks++; }

static void read_books(struct heaplab_books *books)
{
    *books = (struct heaplab_books){
        .arena_size = ARENA_SIZE,
        .pool_size = POOL_SIZE,
        .alignment = ALIGNMENT,
        .threshold = SMALL_REQUEST_THRESHOLD,
        .arenas_total = ntimes_arena_allocated,
        .arenas_reclaimed = ntimes_arena_allocated - narenas_currently_allocated,
        .arenas_highwater = narenas_highwater,
        .arenas_current = narenas_currently_allocated,
        .backing_blocks = (size_t)raw_allocated_blocks,
        .bookkeeping = maxarenas * sizeof *arenas,
        .radix_tree = WITH_PYMALLOC_RADIX_TREE,
    };
#if WITH_PYMALLOC_RADIX_TREE
    books->bookkeeping += (size_t)arena_map_mid_count * sizeof(arena_map_mid_t);
    books->bookkeeping += (size_t)arena_map_bot_count * sizeof(arena_map_bot_t);
#endif
    for (uint i = 0; i < maxarenas; i++) {
        if (arenas[i].address == 0)
            continue;
        books->unused_pools += arenas[i].nfreepools;
        uintptr_t end = (uintptr_t)arenas[i].pool_address;
        uintptr_t pool = (uintptr_t)_Py_ALIGN_UP(arenas[i].address, POOL_SIZE);
        if (pool != arenas[i].address)
            books->arena_alignment += POOL_SIZE;
        for (; pool < end; pool += POOL_SIZE) {
            poolp header = (poolp)pool;
            if (header->ref.count == 0)
                continue;
            size_t size = INDEX2SIZE(header->szidx);
            books->used_pools++;
            books->blocks += header->ref.count;
            books->allocated += header->ref.count * size;
            books->available += (NUMBLOCKS(header->szidx) - header->ref.count) * size;
            books->headers += POOL_OVERHEAD;
            books->quantization += (POOL_SIZE - POOL_OVERHEAD) % size;
        }
    }
}

/* CPython's own text, in memory of the C library's that the caller frees; null if there is none to be had. */
static char *text(void)
{
    char *written = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&written, &length);
    if (out == NULL)
        return NULL;
    _PyObject_DebugMallocStats(out);
    if (fclose(out) != 0) {
        free(written);
        return NULL;
    }
    return written;
}

/* Every arena unmapped, every list and count as at the start of the program. Blocks of the backing stay with the
 * backing. The nodes of the radix tree stay too unless they are asked for: CPython never frees one, and to free a large
 * block can change how the backing serves the next. */
static void reset(int nodes_too)
{
    for (uint i = 0; i < maxarenas; i++) {
        if (arenas[i].address == 0)
            continue;
#if WITH_PYMALLOC_RADIX_TREE
        arena_map_mark_used(arenas[i].address, 0);
#endif
        _PyObject_Arena.free(_PyObject_Arena.ctx, (void *)arenas[i].address, ARENA_SIZE);
    }
    PyMem_RawFree(arenas);
    arenas = NULL;
    maxarenas = 0;
    unused_arena_objects = NULL;
    usable_arenas = NULL;
    memset(nfp2lasta, 0, sizeof nfp2lasta);
    narenas_currently_allocated = 0;
    ntimes_arena_allocated = 0;
    narenas_highwater = 0;
    raw_allocated_blocks = 0;
    for (size_t i = 0; i < sizeof usedpools / sizeof usedpools[0] / 2; i++)
        usedpools[2 * i] = usedpools[2 * i + 1] = PTA(i);
#if WITH_PYMALLOC_RADIX_TREE
    for (size_t i = 0; nodes_too && i < MAP_TOP_LENGTH; i++) {
        arena_map_mid_t *middle = arena_map_root.ptrs[i];
        if (middle == NULL)
            continue;
        for (size_t j = 0; j < MAP_MID_LENGTH; j++)
            PyMem_RawFree(middle->ptrs[j]);
        PyMem_RawFree(middle);
        arena_map_root.ptrs[i] = NULL;
    }
    if (nodes_too)
        arena_map_mid_count = arena_map_bot_count = 0;
#else
    (void)nodes_too;
#endif
}

/* The entry points that are not in anybody's hot path. Layout shared with `variant.rs`. */
struct heaplab_entries {
    void (*adopt)(void);
    void (*books)(struct heaplab_books *books);
    char *(*text)(void);
    void (*reset)(int nodes_too);
    void (*backing)(PyMemAllocatorDomain domain, PyMemAllocatorEx *into);
    void (*set_backing)(PyMemAllocatorDomain domain, PyMemAllocatorEx *from);
    void (*arenas)(PyObjectArenaAllocator *into);
    void (*set_arenas)(PyObjectArenaAllocator *from);
};
const struct heaplab_entries HEAPLAB_NAME(entries) = {
    adopt, read_books, text, reset, PyMem_GetAllocator, PyMem_SetAllocator, PyObject_GetArenaAllocator,
    PyObject_SetArenaAllocator,
};
