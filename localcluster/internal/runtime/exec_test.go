package runtime

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	clientexec "k8s.io/client-go/util/exec"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestExecSyncRunsInsideTheContainer(t *testing.T) {
	user := withSecurity(&cri.LinuxContainerSecurityContext{RunAsUser: &cri.Int64Value{Value: 1000}})
	running := startNode(t).pod("web").start(script("echo inside > /tmp/file; echo ready; sleep infinity",
		user, withEnv("KEY", "value"), func(c *cri.ContainerConfig) { c.WorkingDir = "/tmp" }))
	running.awaitOutput("ready")
	response := running.exec("sh", "-c", "cat file; echo $KEY $(id -u) $(hostname); echo oops >&2; exit 4")
	equal(t, "output", string(response.GetStdout()), "inside\nvalue 1000 web\n")
	equal(t, "errors", string(response.GetStderr()), "oops\n")
	equal(t, "exit code", response.GetExitCode(), 4)
}

func TestExecSyncKillsWhatTakesTooLong(t *testing.T) {
	running := startNode(t).pod("web").start(script("sleep infinity"))
	_, err := running.ExecSync(running.ctx(), &cri.ExecSyncRequest{
		ContainerId: running.id, Cmd: []string{"sh", "-c", "sleep 4321 & wait"}, Timeout: 1,
	})
	equal(t, "code", status.Code(err), codes.DeadlineExceeded)
	equal(t, "processes left", string(running.exec("pgrep", "-f", "^sleep 4321").GetStdout()), "")
}

func TestExecSyncDoesNotWaitForTheBackground(t *testing.T) {
	running := startNode(t).pod("web").start(script("sleep infinity"))
	equal(t, "output", string(running.exec("sh", "-c", "sleep infinity & echo done").GetStdout()), "done\n")
}

func TestExecSyncFails(t *testing.T) {
	pod := startNode(t).pod("web")
	running, ended := pod.start(script("sleep infinity")), pod.run(script("true"))
	cases := map[string]struct {
		id      string
		command []string
		want    codes.Code
	}{
		"without a container":     {"absent", []string{"true"}, codes.NotFound},
		"in an ended container":   {ended.id, []string{"true"}, codes.FailedPrecondition},
		"without a command":       {running.id, nil, codes.InvalidArgument},
		"with an unknown command": {running.id, []string{"no-such-program"}, codes.Unknown},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := pod.ExecSync(pod.ctx(), &cri.ExecSyncRequest{ContainerId: test.id, Cmd: test.command})
			equal(t, "code", status.Code(err), test.want)
		})
	}
}

// attach runs a command over the streaming server, as kubectl exec does by way of the kubelet.
func (c *task) attach(options remotecommand.StreamOptions, line ...string) error {
	c.Helper()
	response, err := c.Exec(c.ctx(), &cri.ExecRequest{
		ContainerId: c.id, Cmd: line, Tty: options.Tty,
		Stdin: options.Stdin != nil, Stdout: options.Stdout != nil, Stderr: options.Stderr != nil,
	})
	must(c.T, err)
	address, err := url.Parse(response.GetUrl())
	must(c.T, err)
	executor, err := remotecommand.NewSPDYExecutor(&rest.Config{Host: address.Host}, "POST", address)
	must(c.T, err)
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	return executor.StreamWithContext(ctx, options)
}

func TestStreamingExec(t *testing.T) {
	running := startNode(t).pod("web").start(script("sleep infinity"))
	var stdout, stderr bytes.Buffer
	err := running.attach(remotecommand.StreamOptions{
		Stdin: strings.NewReader("typed\n"), Stdout: &stdout, Stderr: &stderr,
	}, "sh", "-c", "read line; echo got $line; echo oops >&2; exit 6")

	var exit clientexec.CodeExitError
	if !errors.As(err, &exit) || exit.Code != 6 {
		t.Errorf("got error %v, want exit code 6", err)
	}
	equal(t, "output", stdout.String(), "got typed\n")
	equal(t, "errors", stderr.String(), "oops\n")
}

func TestStreamingExecEndsThoughItsInputIsOpen(t *testing.T) {
	running := startNode(t).pod("web").start(script("sleep infinity"))
	input, keepOpen := io.Pipe()
	defer keepOpen.Close()
	var stdout bytes.Buffer
	must(t, running.attach(remotecommand.StreamOptions{Stdin: input, Stdout: &stdout}, "echo", "hello"))
	equal(t, "output", stdout.String(), "hello\n")
}

func TestStreamingExecWithTerminal(t *testing.T) {
	running := startNode(t).pod("web").start(script("sleep infinity"))
	var stdout bytes.Buffer
	err := running.attach(remotecommand.StreamOptions{
		Stdin: strings.NewReader("typed\n"), Stdout: &stdout, Tty: true, TerminalSizeQueue: &oneSize{},
	}, "sh", "-c", "read line; tty; echo $TERM; while [ $(tput lines) != 33 ]; do sleep 0.01; done; stty size")
	must(t, err)
	for _, want := range []string{"/dev/pts/0", "xterm", "33 77"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("output %q lacks %q", stdout.String(), want)
		}
	}
}

// oneSize is a terminal that has one size for ever.
type oneSize struct{ told bool }

func (s *oneSize) Next() *remotecommand.TerminalSize {
	if s.told {
		return nil
	}
	s.told = true
	return &remotecommand.TerminalSize{Width: 77, Height: 33}
}

func TestPortForwardReachesTheNodesLoopback(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	go answerOnce(listener)

	_, port, _ := net.SplitHostPort(listener.Addr().String())
	number, _ := strconv.Atoi(port)
	client, server := net.Pipe()
	defer client.Close()
	ended := make(chan error, 1)
	go func() { ended <- streams{}.PortForward(t.Context(), "", int32(number), server) }()
	_, err = fmt.Fprintln(client, "ping")
	must(t, err)
	answer, err := bufio.NewReader(client).ReadString('\n')
	must(t, err)
	equal(t, "answer", answer, "pong ping\n")
	select {
	case err := <-ended:
		must(t, err)
	case <-time.After(patience):
		t.Fatal("the connection has not been closed")
	}
}

func answerOnce(listener net.Listener) {
	connection, err := listener.Accept()
	if err != nil {
		return
	}
	defer connection.Close()
	line, _ := bufio.NewReader(connection).ReadString('\n')
	_, _ = fmt.Fprintf(connection, "pong %s", line)
}

func TestNoThreadOfTheNodeStaysInAContainer(t *testing.T) {
	running := startNode(t).pod("web").start(script("sleep infinity"))
	running.exec("true")
	eventually(t, "the end of the threads that entered the container", func() bool {
		return threadsOutside(t) == 0
	})
}

// threadsOutside counts the threads of this process that are in another mount namespace than its main thread.
func threadsOutside(t *testing.T) (count int) {
	t.Helper()
	home, err := os.Readlink("/proc/self/ns/mnt")
	must(t, err)
	threads, err := os.ReadDir("/proc/self/task")
	must(t, err)
	for _, thread := range threads {
		if place, err := os.Readlink("/proc/self/task/" + thread.Name() + "/ns/mnt"); err == nil && place != home {
			count++
		}
	}
	return count
}
