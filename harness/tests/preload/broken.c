/* A broken allocator over the C library's, in the way that FAULT names. */
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

#define OVERLAPS 1
#define LOSES 2
#define CRASHES 3
#define MISALIGNS 4
#define HALF 5

/* Handed out again and again for requests of 1000 bytes. */
static char shared[1000];

#if FAULT == MISALIGNS
enum { SHIFT = 8 };
#else
enum { SHIFT = 0 };
#endif

void *malloc(size_t size)
{
    if (FAULT == OVERLAPS && size == sizeof shared)
        return shared;
    if (FAULT == CRASHES && size == 3000)
        raise(SIGSEGV);
    char *p = __libc_malloc(size + SHIFT);
    return p && size + SHIFT >= size ? p + SHIFT : NULL;
}

#if FAULT != HALF
void *calloc(size_t count, size_t size)
{
    char *p = size && count > ((size_t)-1 - SHIFT) / size ? NULL : __libc_calloc(1, count * size + SHIFT);
    return p ? p + SHIFT : NULL;
}
#endif

void *realloc(void *old, size_t size)
{
    if (old == shared) {
        void *fresh = malloc(size);
        return fresh ? memcpy(fresh, shared, size < sizeof shared ? size : sizeof shared) : NULL;
    }
    char *block = old ? (char *)old - SHIFT : NULL;
    if (size + SHIFT < size)
        return NULL;
    char *p = __libc_realloc(block, size + SHIFT);
    if (FAULT == LOSES && p && size > 64)
        p[63] ^= 1;
    return p ? p + SHIFT : NULL;
}

void free(void *p)
{
    if (p && p != shared)
        __libc_free((char *)p - SHIFT);
}
