// SPDX-License-Identifier: Apache-2.0
/// Stands in for libdl.so.2 and libpthread.so.0 of glibc 2.27, for the linker alone: the libraries that it
/// makes then say in which of the two a function is. Before 2.30 glibc looks nowhere else; now both are
/// empty, and it finds it.
void dladdr(void);
void dlclose(void);
void dlerror(void);
void dlinfo(void);
void dlopen(void);
void dlsym(void);
void dlvsym(void);
void pthread_create(void);
void pthread_detach(void);
void pthread_join(void);
void pthread_key_create(void);
void pthread_key_delete(void);
void pthread_mutex_timedlock(void);
void pthread_once(void);
void pthread_rwlock_rdlock(void);
void pthread_rwlock_unlock(void);
void pthread_rwlock_wrlock(void);
void pthread_setname_np(void);
void pthread_sigmask(void);

void dladdr(void) {}
void dlclose(void) {}
void dlerror(void) {}
void dlinfo(void) {}
void dlopen(void) {}
void dlsym(void) {}
void dlvsym(void) {}
void pthread_create(void) {}
void pthread_detach(void) {}
void pthread_join(void) {}
void pthread_key_create(void) {}
void pthread_key_delete(void) {}
void pthread_mutex_timedlock(void) {}
void pthread_once(void) {}
void pthread_rwlock_rdlock(void) {}
void pthread_rwlock_unlock(void) {}
void pthread_rwlock_wrlock(void) {}
void pthread_setname_np(void) {}
void pthread_sigmask(void) {}
