/* The shortest exchange that can be written: a runner that speaks the protocol and does no work.

   null host|gpu waits|launches      its channel to the judge is standard input

   It answers Load, and then batches: Arm, Reveal. Everything that can be done before the clock starts is done then: its
   outputs are mapped, addresses are reserved, and the device works for this process already, so that it need not switch
   to it when the clock runs: either a kernel of one thread *waits* for a word in the host's memory, or such kernels are
   *launched* again and again. When the inputs come it maps those of the first slab, as whoever wants to compute must, has
   a thread write one word of the last output, and answers. What the judge measures then is what a batch costs without its
   work; which way is the shorter one depends on the sizes, so both are tried. It is the judge's own program and runs
   while no submission lives. Messages come from the judge and are not checked any further. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST 64
#define PACKET (128 * 1024)
#define CHANNEL 0

typedef uint64_t Address;
typedef struct { int type, id; } Location;
typedef struct { Location location; int flags; } Access;

static struct {
  int (*cuInit)(unsigned), (*cuDeviceGet)(int *, int), (*cuDevicePrimaryCtxRetain)(void **, int);
  int (*cuCtxSetCurrent)(void *), (*cuCtxSynchronize)(void);
  int (*cuMemImportFromShareableHandle)(Address *, void *, int), (*cuMemRelease)(Address);
  int (*cuMemAddressReserve)(Address *, size_t, size_t, Address, unsigned long long);
  int (*cuMemMap)(Address, size_t, size_t, Address, unsigned long long), (*cuMemUnmap)(Address, size_t);
  int (*cuMemSetAccess)(Address, size_t, const Access *, size_t), (*cuMemAddressFree)(Address, size_t);
  int (*cuMemHostAlloc)(void **, size_t, unsigned), (*cuModuleLoadData)(void **, const void *);
  int (*cuModuleGetFunction)(void **, void *, const char *);
  int (*cuLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
} cuda;

/* Waits for `go`, for some seconds at most, writes a word to `out`, says `done`. */
static const char *const WAITS =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry waits(.param .u64 go, .param .u64 out, .param .u64 done) {\n"
    "  .reg .u64 %g, %o, %d; .reg .u32 %v, %n; .reg .pred %p, %q;\n"
    "  ld.param.u64 %g, [go]; ld.param.u64 %o, [out]; ld.param.u64 %d, [done]; mov.u32 %n, 0;\n"
    "again: ld.volatile.global.u32 %v, [%g]; add.u32 %n, %n, 1; setp.eq.u32 %p, %v, 0; setp.lt.u32 %q, %n, 4000000;\n"
    "  and.pred %p, %p, %q; @%p bra again;\n"
    "  st.global.u32 [%o], 7; membar.sys; mov.u32 %v, 1; st.volatile.global.u32 [%d], %v; ret;\n}\n";

static int gpu, waiting;
static void *kernel;
static volatile uint32_t *words; /* go, done */
static uint64_t *control;
static int descriptors[MOST], received;
static char packet[PACKET + 1];
static char *inputs[MOST], *outputs[MOST];

static void fail(const char *what, int status) {
  fprintf(stderr, "null: %s (%d)\n", what, status);
  exit(1);
}

static void check(int status, const char *what) {
  if (status) fail(what, status);
}

static int receive(int flags) {
  static char ancillary[CMSG_SPACE(sizeof descriptors)];
  struct iovec vector = {packet, PACKET};
  struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = ancillary, .msg_controllen = sizeof ancillary};
  ssize_t size = recvmsg(CHANNEL, &message, flags);
  received = 0;
  if (size <= 0) return (int)size;
  packet[size] = 0;
  for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    received = (int)((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(descriptors, CMSG_DATA(part), (size_t)received * sizeof(int));
  }
  return (int)size;
}

static void close_received(void) {
  for (int i = 0; i < received; i++) close(descriptors[i]);
}

static void say(const char *kind, uint64_t nonce, const char *more) {
  char text[160];
  int size = nonce ? snprintf(text, sizeof text, "{\"is\":\"%s\",\"nonce\":%llu}", kind, (unsigned long long)nonce)
                   : snprintf(text, sizeof text, "{\"is\":\"%s\",%s}", kind, more);
  if (send(CHANNEL, text, (size_t)size, 0) != size) fail("send", errno);
}

static uint64_t number(const char *from, const char *key) {
  const char *found = strstr(from, key);
  return found ? strtoull(found + strlen(key), NULL, 10) : 0;
}

static char *reserve(uint64_t size) {
  Address address;
  if (!gpu) return NULL;
  check(cuda.cuMemAddressReserve(&address, size, 0, 0, 0), "reserve");
  return (char *)address;
}

static char *attach(char *address, uint64_t size, int descriptor) {
  static const Access access = {{1, 0}, 3};
  Address handle;
  if (!gpu) {
    char *mapped = mmap(NULL, size, PROT_READ, MAP_SHARED, descriptor, 0);
    char *writable = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (mapped == MAP_FAILED) fail("mmap", errno);
    if (writable == MAP_FAILED) return mapped;
    munmap(mapped, size);
    return writable;
  }
  check(cuda.cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)descriptor, 1), "import");
  check(cuda.cuMemMap((Address)address, size, 0, handle, 0), "map");
  check(cuda.cuMemSetAccess((Address)address, size, &access, 1), "access");
  check(cuda.cuMemRelease(handle), "release");
  return address;
}

static void detach(char *address, uint64_t size, int attached) {
  if (!gpu) {
    if (attached) munmap(address, size);
    return;
  }
  if (attached) check(cuda.cuMemUnmap((Address)address, size), "unmap");
  check(cuda.cuMemAddressFree((Address)address, size), "free");
}

static void launch(char *output, uint32_t released) {
  Address go = (Address)&words[0], out = (Address)output, done = (Address)&words[1];
  void *arguments[] = {&go, &out, &done};
  words[0] = released;
  words[1] = 0;
  check(cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL), "launch");
}

static void batch(void) {
  int slabs = received; /* of one call each, or of a few */
  uint64_t size[2] = {0, 0}; /* of inputs, of outputs */
  for (const char *at = packet; (at = strstr(at, "\"bytes\":")); at++)
    size[strncmp(strstr(at, "\"writable\":") + 11, "true", 4) == 0] = number(at, "\"bytes\":");
  if (slabs < 1 || slabs > MOST || !size[0] || !size[1]) fail("arm", slabs);
  for (int i = 0; i < slabs; i++) {
    inputs[i] = reserve(size[0]);
    outputs[i] = attach(reserve(size[1]), size[1], descriptors[i]);
  }
  close_received();
  if (gpu) launch(outputs[slabs - 1], !waiting);
  say("Armed", number(packet, "\"nonce\":"), "");
  int got;
  for (long turn = 0; (got = receive(MSG_DONTWAIT)) < 0; turn++) {
    if (errno != EAGAIN) fail("receive", errno);
    if (gpu && !waiting && turn % 1000 == 999 && words[1]) launch(outputs[slabs - 1], 1);
  }
  if (!got) exit(0);
  inputs[0] = attach(inputs[0], size[0], descriptors[0]);
  if (gpu) {
    if (!waiting) launch(outputs[slabs - 1], 1);
    words[0] = 1;
    while (!words[1]) ;
  } else {
    *(volatile char *)outputs[slabs - 1] = *(volatile char *)outputs[slabs - 1];
  }
  control[0] = number(packet, "\"nonce\":");
  say("Returned", control[0], "");
  if (gpu) check(cuda.cuCtxSynchronize(), "synchronize");
  for (int i = 0; i < slabs; i++) {
    detach(inputs[i], size[0], i == 0);
    detach(outputs[i], size[1], 1);
  }
  close_received();
  say("Released", control[0], "");
}

static void *look_up(void *library, const char *name) {
  void *found = dlsym(library, name);
  if (!found) fail(name, 0);
  return found;
}

static void begin_gpu(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW), *context, *module;
  int device;
  if (!library) fail("libcuda.so.1 is not there", 0);
#define GET(name) *(void **)&cuda.name = look_up(library, #name)
  GET(cuInit); GET(cuDeviceGet); GET(cuDevicePrimaryCtxRetain); GET(cuCtxSetCurrent); GET(cuCtxSynchronize);
  GET(cuMemImportFromShareableHandle); GET(cuMemRelease); GET(cuMemAddressReserve); GET(cuMemMap); GET(cuMemUnmap);
  GET(cuMemSetAccess); GET(cuMemAddressFree); GET(cuMemHostAlloc); GET(cuModuleLoadData); GET(cuModuleGetFunction);
  GET(cuLaunchKernel);
  check(cuda.cuInit(0), "init");
  check(cuda.cuDeviceGet(&device, 0), "device");
  check(cuda.cuDevicePrimaryCtxRetain(&context, device), "context");
  check(cuda.cuCtxSetCurrent(context), "current");
  check(cuda.cuMemHostAlloc((void **)&words, 4096, 2), "host memory");
  check(cuda.cuModuleLoadData(&module, WAITS), "module");
  check(cuda.cuModuleGetFunction(&kernel, module, "waits"), "kernel");
}

int main(int count, char **arguments) {
  if (count != 3) fail("arguments: host|gpu waits|launches", count);
  gpu = strcmp(arguments[1], "gpu") == 0;
  waiting = strcmp(arguments[2], "waits") == 0;
  if (gpu) begin_gpu();
  say("Ready", 0, "\"versions\":{}");
  while (receive(0) > 0) {
    if (strstr(packet, "\"is\":\"Load\"")) {
      control = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptors[1], 0);
      if (control == MAP_FAILED) fail("mmap", errno);
      close_received();
      say("Loaded", 0, "\"signature\":\"\"");
    } else {
      batch();
    }
  }
  return 0;
}
