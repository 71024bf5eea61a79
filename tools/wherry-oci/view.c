// The program executed once more through a read-only view of its own directory
// (docs/decisions/0008-sealed-by-a-view.md). On x86-64 this is the first thing that a process of it
// does, before the C library has started: it saves the start and the page faults of a whole C++
// program. So nothing in here may need relocation, the C library or a stack protector.
#include "view.h"

#include <elf.h>
#include <linux/fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>

static long call(long number, long a, long b, long c, long d, long e) {
#ifdef __x86_64__
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                   : "rcx", "r11", "memory");
  return result;
#else
  extern long syscall(long, ...);
  return syscall(number, a, b, c, d, e);
#endif
}

static int same(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

// Verbs from which a container is entered. An operand of that name costs another verb half a
// millisecond.
static int enters_containers(char* const* argv) {
  for (; *argv; ++argv)
    if (same(*argv, "create") || same(*argv, "run") || same(*argv, "exec")) return 1;
  return 0;
}

// An overlay without an upper layer wants two lower ones; nothing is looked up in the second.
static long open_view(const char* dir, const char* name) {
  const long context = call(SYS_fsopen, (long)"overlay", FSOPEN_CLOEXEC, 0, 0, 0);
  if (context < 0) return context;
  long view = call(SYS_fsconfig, context, FSCONFIG_SET_STRING, (long)"lowerdir+", (long)dir, 0);
  if (view >= 0)
    view = call(SYS_fsconfig, context, FSCONFIG_SET_STRING, (long)"lowerdir+", (long)"/sys", 0);
  if (view >= 0) view = call(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, 0, 0, 0);
  if (view >= 0)
    view = call(SYS_fsmount, context, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV, 0, 0);
  call(SYS_close, context, 0, 0, 0, 0);
  if (view < 0) return view;
  const long file = call(SYS_openat, view, (long)name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0, 0);
  call(SYS_close, view, 0, 0, 0, 0);
  return file;
}

void wherry_execute_view(char* const* argv, char* const* env) {
  if (!enters_containers(argv)) return;
  char path[4096];
  const long length =
      call(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)path, sizeof path - 1, 0);
  if (length <= 0) return;
  path[length] = '\0';
  long slash = length;
  while (slash > 0 && path[slash] != '/') --slash;
  if (slash == 0) return;  // a view or a memfd already, or in no directory that could be seen
  path[slash] = '\0';
  const long file = open_view(path, path + slash + 1);
  if (file < 0) return;
  call(SYS_execveat, file, (long)"", (long)argv, (long)env, AT_EMPTY_PATH);
  call(SYS_close, file, 0, 0, 0, 0);
}

#ifdef __x86_64__
// What the kernel leaves on the stack (System V ABI, x86-64, 3.4.1): argc, argv, 0, environment, 0,
// auxiliary vector.
__attribute__((used)) static void before_libc(char** stack) {
  char** argv = stack + 1;
  char** env = argv + (long)stack[0] + 1;
  char** end = env;
  while (*end) ++end;
  for (const Elf64_auxv_t* aux = (const Elf64_auxv_t*)(end + 1); aux->a_type != AT_NULL; ++aux)
    if (aux->a_type == AT_SECURE && aux->a_un.a_val != 0) return;  // main() refuses it
  wherry_execute_view(argv, env);
}

__asm__(
    ".text\n.globl wherry_entry\n.type wherry_entry, @function\nwherry_entry:\n"
    "  endbr64\n  mov %rsp, %rdi\n  mov %rdx, %r12\n  mov %rsp, %rbx\n  and $-16, %rsp\n  xor "
    "%ebp, %ebp\n"
    "  call before_libc\n"
    "  mov %rbx, %rsp\n  mov %r12, %rdx\n  jmp _start\n.size wherry_entry, . - wherry_entry\n");
#endif
