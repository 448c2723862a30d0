/* Stands in for CPython's header of this name: what Objects/obmalloc.c of CPython 3.11 needs on 64-bit Linux, and no
 * more. Written by us from what the file leaves undefined. */
#ifndef HEAPLAB_OBMALLOC_PYTHON_H
#define HEAPLAB_OBMALLOC_PYTHON_H

#define _GNU_SOURCE 1
#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <wchar.h>

/* What configuring CPython would find out. */
#define SIZEOF_VOID_P 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_INT 4
#define HAVE_MMAP 1
#define WITH_PYMALLOC 1
_Static_assert(sizeof(void *) == SIZEOF_VOID_P && sizeof(size_t) == SIZEOF_SIZE_T && sizeof(int) == SIZEOF_INT,
               "the stand-in is for 64-bit machines");

typedef ssize_t Py_ssize_t;
#define PY_SSIZE_T_MAX ((Py_ssize_t)(SIZE_MAX >> 1))

/* Small macros. */
#define Py_ALWAYS_INLINE inline __attribute__((always_inline))
#define Py_MIN(a, b) ((a) < (b) ? (a) : (b))
#define _Py_SIZE_ROUND_UP(n, unit) (((size_t)(n) + ((size_t)(unit) - 1)) & ~((size_t)(unit) - 1))
#define _Py_ALIGN_DOWN(p, unit) ((void *)((uintptr_t)(p) & ~((uintptr_t)(unit) - 1)))
#define _Py_ALIGN_UP(p, unit) ((void *)(((uintptr_t)(p) + ((uintptr_t)(unit) - 1)) & ~((uintptr_t)(unit) - 1)))
#define Py_GETENV(name) getenv(name)
#define PyOS_snprintf snprintf

/* The interpreter's counters: there is no interpreter. */
#define OBJECT_STAT_INC(name) ((void)0)
#define OBJECT_STAT_INC_COND(name, condition) ((void)0)

/* The types of the allocators' interface. */
typedef enum {
    PYMEM_DOMAIN_RAW,
    PYMEM_DOMAIN_MEM,
    PYMEM_DOMAIN_OBJ
} PyMemAllocatorDomain;

typedef enum {
    PYMEM_ALLOCATOR_NOT_SET,
    PYMEM_ALLOCATOR_DEFAULT,
    PYMEM_ALLOCATOR_DEBUG,
    PYMEM_ALLOCATOR_MALLOC,
    PYMEM_ALLOCATOR_MALLOC_DEBUG,
    PYMEM_ALLOCATOR_PYMALLOC,
    PYMEM_ALLOCATOR_PYMALLOC_DEBUG
} PyMemAllocatorName;

typedef struct {
    void *ctx;
    void *(*malloc)(void *ctx, size_t size);
    void *(*calloc)(void *ctx, size_t count, size_t size);
    void *(*realloc)(void *ctx, void *p, size_t size);
    void (*free)(void *ctx, void *p);
} PyMemAllocatorEx;

typedef struct {
    void *ctx;
    void *(*alloc)(void *ctx, size_t size);
    void (*free)(void *ctx, void *p, size_t size);
} PyObjectArenaAllocator;

/* Every external name of the file, with the prefix of the variant: four variants are linked into one binary, and none
 * may meet a real libpython. */
#define HEAPLAB_JOIN_(a, b) a##b
#define HEAPLAB_JOIN(a, b) HEAPLAB_JOIN_(a, b)
#define HEAPLAB_NAME(name) HEAPLAB_JOIN(HEAPLAB_PREFIX, name)
#define PyMem_Calloc HEAPLAB_NAME(PyMem_Calloc)
#define PyMem_Free HEAPLAB_NAME(PyMem_Free)
#define PyMem_GetAllocator HEAPLAB_NAME(PyMem_GetAllocator)
#define PyMem_Malloc HEAPLAB_NAME(PyMem_Malloc)
#define PyMem_RawCalloc HEAPLAB_NAME(PyMem_RawCalloc)
#define PyMem_RawFree HEAPLAB_NAME(PyMem_RawFree)
#define PyMem_RawMalloc HEAPLAB_NAME(PyMem_RawMalloc)
#define PyMem_RawRealloc HEAPLAB_NAME(PyMem_RawRealloc)
#define PyMem_Realloc HEAPLAB_NAME(PyMem_Realloc)
#define PyMem_SetAllocator HEAPLAB_NAME(PyMem_SetAllocator)
#define PyMem_SetupDebugHooks HEAPLAB_NAME(PyMem_SetupDebugHooks)
#define PyObject_Calloc HEAPLAB_NAME(PyObject_Calloc)
#define PyObject_Free HEAPLAB_NAME(PyObject_Free)
#define PyObject_GetArenaAllocator HEAPLAB_NAME(PyObject_GetArenaAllocator)
#define PyObject_Malloc HEAPLAB_NAME(PyObject_Malloc)
#define PyObject_Realloc HEAPLAB_NAME(PyObject_Realloc)
#define PyObject_SetArenaAllocator HEAPLAB_NAME(PyObject_SetArenaAllocator)
#define _PyDebugAllocatorStats HEAPLAB_NAME(_PyDebugAllocatorStats)
#define _PyMem_DumpTraceback HEAPLAB_NAME(_PyMem_DumpTraceback)
#define _PyMem_GetAllocatorName HEAPLAB_NAME(_PyMem_GetAllocatorName)
#define _PyMem_GetCurrentAllocatorName HEAPLAB_NAME(_PyMem_GetCurrentAllocatorName)
#define _PyMem_RawStrdup HEAPLAB_NAME(_PyMem_RawStrdup)
#define _PyMem_RawWcsdup HEAPLAB_NAME(_PyMem_RawWcsdup)
#define _PyMem_SetDefaultAllocator HEAPLAB_NAME(_PyMem_SetDefaultAllocator)
#define _PyMem_SetupAllocators HEAPLAB_NAME(_PyMem_SetupAllocators)
#define _PyMem_Strdup HEAPLAB_NAME(_PyMem_Strdup)
#define _PyObject_DebugMallocStats HEAPLAB_NAME(_PyObject_DebugMallocStats)
#define _PyObject_VirtualAlloc HEAPLAB_NAME(_PyObject_VirtualAlloc)
#define _PyObject_VirtualFree HEAPLAB_NAME(_PyObject_VirtualFree)
#define _Py_GetAllocatedBlocks HEAPLAB_NAME(_Py_GetAllocatedBlocks)
#define _Py_tracemalloc_config HEAPLAB_NAME(_Py_tracemalloc_config)

/* Used in the file before they are defined. */
void *PyMem_RawMalloc(size_t size);
void *PyMem_RawCalloc(size_t count, size_t size);
void *PyMem_RawRealloc(void *p, size_t size);
void PyMem_RawFree(void *p);
void *PyMem_Malloc(size_t size);
void PyMem_GetAllocator(PyMemAllocatorDomain domain, PyMemAllocatorEx *into);
void PyMem_SetAllocator(PyMemAllocatorDomain domain, PyMemAllocatorEx *from);
void PyMem_SetupDebugHooks(void);
int _PyMem_SetDefaultAllocator(PyMemAllocatorDomain domain, PyMemAllocatorEx *old);
int _PyObject_DebugMallocStats(FILE *out);
Py_ssize_t _Py_GetAllocatedBlocks(void);

/* Only the debug hooks, which are never switched on, reach these. */
static inline int heaplab_holds_gil(void) { return 1; }
#define PyGILState_Check heaplab_holds_gil
#define _Py_FatalErrorFunc(where, message) (fprintf(stderr, "%s: %s\n", where, message), abort())
#define _Py_FatalErrorFormat(where, ...) (fprintf(stderr, __VA_ARGS__), abort())

#endif
