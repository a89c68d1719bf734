package program

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/component-base/cli"

	"gpushare.io/scheduler/internal/plugin"
)

// isProgram has the test's own program be ours.
const isProgram = "GPUSHARE_TEST_IS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(isProgram) == "" {
		os.Exit(m.Run())
	}
	factory := &plugin.Factory{}
	os.Exit(cli.Run(Program{Option: factory.Register, Stop: factory.Stop}.Command()))
}

const (
	node = `{"metadata":{"name":"gpu-1","uid":"n-1","resourceVersion":"1"},"status":{"allocatable":{"cpu":"8",` +
		`"memory":"8Gi","pods":"110"}}}`
	shareNode = `{"apiVersion":"gpushare.io/v1alpha1","kind":"GPUShareNode","metadata":{"name":"gpu-1","uid":"s-1",` +
		`"resourceVersion":"1"},"spec":{"mode":"Memory","memoryUnit":"1Gi"},"status":{"memoryUnit":"1Gi","conditions":` +
		`[{"type":"Registered","status":"True"}],"cards":[{"uuid":"GPU-0","index":0,"units":16,"health":"Healthy"}]}}`
	pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%[1]s","namespace":"default","uid":"u-%[1]s",` +
		`"resourceVersion":"%[2]d"},"spec":{"schedulerName":"gpushare-scheduler","containers":[{"name":"main",` +
		`"resources":{"limits":{"gpushare.io/memory":"1"},"requests":{"gpushare.io/memory":"1"}}}]}}`
	freeLease = `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"%s","namespace":` +
		`"gpushare-system","resourceVersion":"1"},"spec":{}}`
)

// apiServer has a node, pods that wait, and Leases, and tells what happens.
type apiServer struct {
	t *testing.T
	// happened are names of Leases with their holders, and of pods that are bound.
	happened []string
	mutex    sync.Mutex
	leases   map[string]string
	version  int
	pods     []string
	bindTime time.Duration
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path, last := r.URL.Path, filepath.Base(r.URL.Path)
	switch {
	case strings.Contains(path, "/leases"):
		s.lease(w, r)
	case last == "binding":
		s.bind(w)
	case r.URL.Query().Get("sendInitialEvents") == "true":
		w.WriteHeader(http.StatusUnprocessableEntity) // as API servers without lists by watch
	case r.URL.Query().Get("watch") != "":
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case r.Method != http.MethodGet:
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	case strings.Contains(r.Header.Get("Accept"), metadataList):
		fmt.Fprintf(w, `{"apiVersion":"meta.k8s.io/v1","kind":"%s","metadata":{},"items":[]}`, metadataList)
	default:
		s.list(w, last)
	}
}

// metadataList is asked for where bound pods are read at a takeover.
const metadataList = "PartialObjectMetadataList"

func (s *apiServer) list(w io.Writer, resource string) {
	items := map[string][]string{"nodes": {node}, "gpusharenodes": {shareNode}, "pods": s.pods}[resource]
	fmt.Fprintf(w, `{"metadata":{"resourceVersion":"1"},"items":[%s]}`, strings.Join(items, ","))
}

func (s *apiServer) bind(w http.ResponseWriter) {
	time.Sleep(s.bindTime)
	s.happen("bound")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","status":"Success"}`)
}

func (s *apiServer) lease(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	name := filepath.Base(r.URL.Path)
	if r.Method == http.MethodPut {
		var lease map[string]any
		if err := json.NewDecoder(r.Body).Decode(&lease); err != nil {
			s.t.Error(err)
		}
		s.version++
		lease["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(s.version)
		written, _ := json.Marshal(lease)
		s.leases[name] = string(written)
		if holder, _ := lease["spec"].(map[string]any)["holderIdentity"].(string); holder == "" {
			s.happened = append(s.happened, name+" is given back")
		}
	}
	fmt.Fprint(w, s.leases[name])
}

func (s *apiServer) happen(what string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.happened = append(s.happened, what)
}

func (s *apiServer) all() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.happened)
}

// run starts our program before the API server.
func (s *apiServer) run() *exec.Cmd {
	s.t.Helper()
	serving := httptest.NewServer(s)
	s.t.Cleanup(serving.CloseClientConnections)
	folder := s.t.TempDir()
	kubeconfig, config := filepath.Join(folder, "kubeconfig"), filepath.Join(folder, "config.yaml")
	sample, err := os.ReadFile("../../config.yaml")
	if err != nil {
		s.t.Fatal(err)
	}
	written := string(sample) + "clientConnection: {kubeconfig: " + kubeconfig + ", contentType: application/json}\n"
	for name, text := range map[string]string{
		config: written,
		kubeconfig: `{"apiVersion":"v1","kind":"Config","current-context":"x","clusters":[{"name":"x","cluster":{"server":"` +
			serving.URL + `"}}],"contexts":[{"name":"x","context":{"cluster":"x","user":""}}]}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	command := exec.Command(os.Args[0], "--config="+config, "--secure-port=0")
	command.Env, command.Stderr, command.Stdout = append(os.Environ(), isProgram+"=1"), os.Stderr, os.Stdout
	if err := command.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = command.Process.Kill() })
	return command
}

// The program is told to stop while Bindings are under way: these end, then those who bind may be others, then the
// leader may be another.
func TestTheProgramStopsInOrder(t *testing.T) {
	const number = 6
	s := &apiServer{t: t, bindTime: time.Second, leases: map[string]string{}, version: 1}
	for _, name := range []string{"gpushare-scheduler", "gpushare-extender"} {
		s.leases[name] = fmt.Sprintf(freeLease, name)
	}
	for place := range number {
		s.pods = append(s.pods, fmt.Sprintf(pod, fmt.Sprintf("a-%d", place), place+1))
	}
	command := s.run()
	for end := time.Now().Add(5 * time.Minute); len(s.all()) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no pod is bound")
		}
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("the program ends with %v", err)
	}
	happened := s.all()
	want := append(slices.Repeat([]string{"bound"}, number), "gpushare-extender is given back",
		"gpushare-scheduler is given back")
	if !slices.Equal(happened, want) {
		t.Errorf("happened: %v", happened)
	}
}
