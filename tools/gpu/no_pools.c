/* Copyright: (c) 2026, dml.vsphere contributors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * A library for LD_PRELOAD: the driver answers that no device has memory pools, as on a vGPU that moves. The CUDA runtime
 * finds the driver's functions by dlsym and by cuGetProcAddress, so both give ours.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#define POOLS 115 /* CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED */

typedef int (*ask_t)(int *, int, int);
typedef int (*find_t)(const char *, void **, int, unsigned long long);
typedef int (*find2_t)(const char *, void **, int, unsigned long long, void *);
typedef void *(*dlsym_t)(void *, const char *);

static ask_t ask;
static find_t find;
static find2_t find2;

static int no_pools(int *value, int attribute, int device) {
  int failed = ask(value, attribute, device);
  if (!failed && attribute == POOLS)
    *value = 0;
  return failed;
}

static void *ours(const char *name, void *theirs);

static int found(const char *name, void **function, int failed) {
  if (!failed && function)
    *function = ours(name, *function);
  return failed;
}

static int find_ours(const char *name, void **function, int version, unsigned long long flags) {
  return found(name, function, find(name, function, version, flags));
}

static int find2_ours(const char *name, void **function, int version, unsigned long long flags, void *status) {
  return found(name, function, find2(name, function, version, flags, status));
}

static void *ours(const char *name, void *theirs) {
  if (!theirs || !name)
    return theirs;
  if (!strcmp(name, "cuDeviceGetAttribute")) {
    ask = (ask_t)theirs;
    return (void *)no_pools;
  }
  if (!strcmp(name, "cuGetProcAddress")) {
    find = (find_t)theirs;
    return (void *)find_ours;
  }
  if (!strcmp(name, "cuGetProcAddress_v2")) {
    find2 = (find2_t)theirs;
    return (void *)find2_ours;
  }
  return theirs;
}

void *dlsym(void *handle, const char *name) {
  static dlsym_t real;
  if (!real)
    real = (dlsym_t)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  return ours(name, real(handle, name));
}
