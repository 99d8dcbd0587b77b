/* What POSIX has, the project and libc++ use, and WASI's C library lacks: a process of one thread that nothing else shares
   files with. Starting a thread fails; locks are free. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

static int key_count;
static const void* key_values[64];

int pthread_mutex_init(pthread_mutex_t* m, const pthread_mutexattr_t* a) { return 0; }
int pthread_mutex_destroy(pthread_mutex_t* m) { return 0; }
int pthread_mutex_lock(pthread_mutex_t* m) { return 0; }
int pthread_mutex_trylock(pthread_mutex_t* m) { return 0; }
int pthread_mutex_unlock(pthread_mutex_t* m) { return 0; }
int pthread_mutexattr_init(pthread_mutexattr_t* a) { return 0; }
int pthread_mutexattr_destroy(pthread_mutexattr_t* a) { return 0; }
int pthread_mutexattr_settype(pthread_mutexattr_t* a, int type) { return 0; }
int pthread_cond_destroy(pthread_cond_t* c) { return 0; }
int pthread_cond_signal(pthread_cond_t* c) { return 0; }
int pthread_cond_broadcast(pthread_cond_t* c) { return 0; }
/* Nobody could ever end the wait. */
int pthread_cond_wait(pthread_cond_t* c, pthread_mutex_t* m) { abort(); }
int pthread_cond_timedwait(pthread_cond_t* c, pthread_mutex_t* m, const struct timespec* t) { return ETIMEDOUT; }

int pthread_create(pthread_t* t, const pthread_attr_t* a, void* (*f)(void*), void* argument) { return EAGAIN; }
int pthread_join(pthread_t t, void** result) { return ESRCH; }
int pthread_detach(pthread_t t) { return ESRCH; }
pthread_t pthread_self(void) { return (pthread_t)1; }
int pthread_attr_init(pthread_attr_t* a) { return 0; }
int pthread_attr_destroy(pthread_attr_t* a) { return 0; }
int pthread_attr_setstacksize(pthread_attr_t* a, size_t bytes) { return 0; }
int pthread_attr_setdetachstate(pthread_attr_t* a, int state) { return 0; }
int pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void)) { return 0; }

int pthread_once(pthread_once_t* once, void (*f)(void)) {
  if (*once == 0) *once = 1, f();
  return 0;
}
int pthread_key_create(pthread_key_t* key, void (*end)(void*)) {
  if (key_count == 64) return EAGAIN;
  *key = (pthread_key_t)key_count++;
  return 0;
}
void* pthread_getspecific(pthread_key_t key) { return (void*)key_values[key]; }
int pthread_setspecific(pthread_key_t key, const void* value) {
  key_values[key] = value;
  return 0;
}

int madvise(void* memory, size_t bytes, int advice) { return 0; }
int flock(int fd, int how) { return 0; }
int __cxa_thread_atexit(void (*f)(void*), void* object, void* module) { return 0; }
