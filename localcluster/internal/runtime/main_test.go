package runtime

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// insideVariable is set in the process that runs the tests as the first one of its own namespaces, as a node.
const insideVariable = "RUNTIME_TEST_INSIDE"

// patience is how long a test waits for what should happen at once.
const patience = time.Minute

func TestMain(m *testing.M) {
	if os.Getuid() != 0 {
		fmt.Println("skipped: containers need root")
		return
	}
	if os.Getenv(insideVariable) == "" {
		os.Exit(runInside())
	}
	if err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("proc", "/proc", "proc", 0, ""),
	); err != nil {
		fmt.Println("prepare the namespaces:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func runInside() int {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS,
		Pdeathsig:  unix.SIGKILL,
	}
	if err := cmd.Run(); err != nil {
		fmt.Println("tests in own namespaces:", err)
		return 1
	}
	return 0
}

// node is a running server with a client that does what the kubelet does.
type node struct {
	*testing.T
	cri.RuntimeServiceClient
	images     cri.ImageServiceClient
	connection *grpc.ClientConn
	config     Config
	stop       func()
}

func startNode(t *testing.T, adjust ...func(*Config)) *node {
	t.Helper()
	directory := t.TempDir()
	config := Config{
		Socket:   filepath.Join(directory, "cri.sock"),
		Node:     "node-1",
		StateDir: filepath.Join(directory, "state"),
		Records:  filepath.Join(directory, "records"),
		Address:  "10.1.2.3",
		Lower:    filepath.Join(directory, "lower"),
	}
	for _, change := range adjust {
		change(&config)
	}
	bindRoot(t, config.Lower)
	stop := serve(t, config)
	eventually(t, "the server's answer", func() bool {
		probe, err := net.Dial("unix", config.Socket)
		if err == nil {
			_ = probe.Close()
		}
		return err == nil
	})
	connection, err := grpc.NewClient("unix://"+config.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	return &node{
		T:                    t,
		RuntimeServiceClient: cri.NewRuntimeServiceClient(connection),
		images:               cri.NewImageServiceClient(connection),
		connection:           connection,
		config:               config,
		stop:                 stop,
	}
}

func bindRoot(t *testing.T, lower string) {
	t.Helper()
	must(t, os.MkdirAll(lower, 0o755))
	must(t, unix.Mount("/", lower, "", unix.MS_BIND, ""))
	t.Cleanup(func() { must(t, unix.Unmount(lower, unix.MNT_DETACH)) })
}

// serve runs the server until the returned function, or the test's end, has stopped it.
func serve(t *testing.T, config Config) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- Serve(ctx, config); close(ended) }()
	stop = func() {
		cancel()
		select {
		case err := <-ended:
			must(t, err)
		case <-time.After(patience):
			t.Fatal("the server has not stopped")
		}
	}
	t.Cleanup(stop)
	return stop
}

// ctx bounds a call.
func (n *node) ctx() context.Context {
	ctx, cancel := context.WithTimeout(n.Context(), patience)
	n.Cleanup(cancel)
	return ctx
}

// pod is a sandbox under test.
type pod struct {
	*node
	id      string
	config  *cri.PodSandboxConfig
	created int // containers
}

func (n *node) pod(name string) *pod {
	n.Helper()
	config := &cri.PodSandboxConfig{
		Metadata:     &cri.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "uid-" + name},
		Hostname:     name,
		LogDirectory: filepath.Join(n.config.StateDir, "..", "logs", name),
		Labels:       map[string]string{"app": name},
	}
	response, err := n.RunPodSandbox(n.ctx(), &cri.RunPodSandboxRequest{Config: config})
	must(n.T, err)
	return &pod{node: n, id: response.GetPodSandboxId(), config: config}
}

// script is the configuration of a container that runs a shell script.
func script(text string, adjust ...func(*cri.ContainerConfig)) *cri.ContainerConfig {
	config := &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: "main"},
		Image:    &cri.ImageSpec{Image: "example.org/app:1"},
		Command:  []string{"sh", "-c"},
		Args:     []string{text},
		LogPath:  "main/0.log",
		Labels:   map[string]string{"name": "main"},
		Linux:    &cri.LinuxContainerConfig{SecurityContext: &cri.LinuxContainerSecurityContext{}},
	}
	for _, change := range adjust {
		change(config)
	}
	return config
}

// task is a container under test.
type task struct {
	*pod
	id string
}

func (p *pod) create(config *cri.ContainerConfig) *task {
	p.Helper()
	if config.LogPath != "" {
		p.created++
		config.LogPath = fmt.Sprintf("main/%d.log", p.created)
	}
	request := &cri.CreateContainerRequest{PodSandboxId: p.id, Config: config, SandboxConfig: p.config}
	response, err := p.CreateContainer(p.ctx(), request)
	must(p.T, err)
	return &task{pod: p, id: response.GetContainerId()}
}

func (p *pod) start(config *cri.ContainerConfig) *task {
	p.Helper()
	created := p.create(config)
	must(p.T, created.start())
	return created
}

// run starts a container and returns it when it has ended.
func (p *pod) run(config *cri.ContainerConfig) *task {
	p.Helper()
	started := p.start(config)
	started.awaitExit()
	return started
}

func (c *task) start() error {
	_, err := c.StartContainer(c.ctx(), &cri.StartContainerRequest{ContainerId: c.id})
	return err
}

func (c *task) status() *cri.ContainerStatus {
	c.Helper()
	response, err := c.ContainerStatus(c.ctx(), &cri.ContainerStatusRequest{ContainerId: c.id})
	must(c.T, err)
	return response.GetStatus()
}

func (c *task) awaitExit() {
	c.Helper()
	eventually(c.T, "the container's exit", func() bool {
		return c.status().GetState() == cri.ContainerState_CONTAINER_EXITED
	})
}

// awaitOutput waits for a line of output, by which a script says how far it is.
func (c *task) awaitOutput(text string) {
	c.Helper()
	eventually(c.T, "the output "+text, func() bool { return strings.Contains(c.output(), text) })
}

func (c *task) stopWithin(seconds int64) {
	c.Helper()
	_, err := c.StopContainer(c.ctx(), &cri.StopContainerRequest{ContainerId: c.id, Timeout: seconds})
	must(c.T, err)
}

func (c *task) exec(line ...string) *cri.ExecSyncResponse {
	c.Helper()
	response, err := c.ExecSync(c.ctx(), &cri.ExecSyncRequest{ContainerId: c.id, Cmd: line, Timeout: 10})
	must(c.T, err)
	return response
}

// logLines returns the log's lines without their times.
func (c *task) logLines() (lines []string) {
	c.Helper()
	text, err := os.ReadFile(c.status().GetLogPath())
	must(c.T, err)
	for line := range strings.Lines(string(text)) {
		moment, rest, _ := strings.Cut(line, " ")
		_, err := time.Parse(time.RFC3339Nano, moment)
		must(c.T, err)
		lines = append(lines, strings.TrimSuffix(rest, "\n"))
	}
	return lines
}

// output returns what the container has written to its standard output.
func (c *task) output() string {
	c.Helper()
	var text strings.Builder
	for _, line := range c.logLines() {
		if content, ok := strings.CutPrefix(line, "stdout F "); ok {
			text.WriteString(content + "\n")
		}
	}
	return text.String()
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("waited %s in vain for %s", patience, what)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
