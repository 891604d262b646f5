/* fork, kill, wait: the few system calls around a worker process. */
#include "core/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/host.h"
#include "core/text.h"

enum fib_status fib_process_start(struct fib_process *process, struct fib_error *err)
{
    int ends[2];
    *process = (struct fib_process){.socket = -1, .oom_kills = fib_host_oom_kills()};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return fib_fail(err, FIB_ERR_DEVICE, "cannot start a worker process: socketpair: %s",
                        strerror(errno));
    const pid_t pid = fork();
    if (pid < 0) {
        const int reason = errno;
        close(ends[0]);
        close(ends[1]);
        return fib_fail(err, FIB_ERR_DEVICE,
                        "cannot start a worker process: %s; --no_isolation runs without one",
                        strerror(reason));
    }
    /* The other end must not stay open here, or nobody would see this one end. */
    close(ends[pid > 0]);
    process->socket = ends[pid == 0];
    process->pid = pid;
    if (pid > 0) {
        setpgid(pid, pid); /* the worker does the same; whoever comes first */
        fcntl(process->socket, F_SETFL, O_NONBLOCK);
    }
    return FIB_OK;
}

bool fib_process_has_ended(const struct fib_process *process)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == process->pid;
}

void fib_process_end(struct fib_process *process, unsigned grace_ms)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    if (process->pid <= 0)
        return;
    shutdown(process->socket, SHUT_RDWR); /* a sound worker ends now */
    for (unsigned i = 0; i < grace_ms && !fib_process_has_ended(process); i++)
        nanosleep(&nap, NULL);
    /* Before it is reaped its number, and so its group's, cannot be anybody else's. */
    kill(-process->pid, SIGKILL);
    kill(process->pid, SIGKILL);
    while (waitpid(process->pid, &process->wait_status, 0) < 0 && errno == EINTR)
        ;
    close(process->socket);
    process->socket = -1;
    process->pid = 0;
}

bool fib_process_was_oom_killed(const struct fib_process *process)
{
    return WIFSIGNALED(process->wait_status) && WTERMSIG(process->wait_status) == SIGKILL &&
           fib_host_oom_kills() > process->oom_kills;
}

static const char *signal_meaning(int number)
{
    static const struct {
        int number;
        const char *meaning;
    } meanings[] = {
        {SIGSEGV, "segmentation fault"},
        {SIGBUS, "bus error"},
        {SIGFPE, "arithmetic error"},
        {SIGILL, "illegal instruction"},
        {SIGABRT, "abort"},
        {SIGTRAP, "trap"},
        {SIGKILL, "killed from outside"},
        {SIGTERM, "asked to end from outside"},
    };
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
        if (meanings[i].number == number)
            return meanings[i].meaning;
    return "unexpected";
}

void fib_process_describe_end(const struct fib_process *process, struct fib_text *out)
{
    if (WIFSIGNALED(process->wait_status))
        fib_text_addf(out, "ended by signal %d (%s)", WTERMSIG(process->wait_status),
                      signal_meaning(WTERMSIG(process->wait_status)));
    else
        fib_text_addf(out, "ended with exit status %d", WEXITSTATUS(process->wait_status));
}
