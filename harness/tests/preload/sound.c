/* A sound allocator: the C library's, reached by the names that it keeps for this. */
#include <errno.h>
#include <stddef.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

void *malloc(size_t size) { return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return __libc_calloc(count, size); }
void *realloc(void *p, size_t size) { return __libc_realloc(p, size); }
void free(void *p) { __libc_free(p); }

int posix_memalign(void **p, size_t align, size_t size)
{
    void *block = __libc_memalign(align, size);
    if (!block)
        return ENOMEM;
    *p = block;
    return 0;
}

/* glibc's chunks have their size, and three bits, in the word before the block. */
size_t malloc_usable_size(void *p)
{
    size_t head = p ? ((size_t *)p)[-1] : 0;
    return head ? (head & ~(size_t)7) - (head & 2 ? 16 : 8) : 0;
}
