// Package runtime is a container runtime for the kubelet (CRI v1) that needs no images: every image is the
// machine's own root filesystem, and a container is a process of the node with its own mount namespace.
package runtime

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"gpushare.io/localcluster/internal/streaming"
)

const runtimeName = "localcluster"

// Config says where a node's runtime keeps its things. Paths are those that the calling process sees.
type Config struct {
	// Socket is the path of the CRI's unix socket.
	Socket string
	// Node is the node's name.
	Node string
	// StateDir holds the containers' writable layers. It cannot lie on an overlay filesystem.
	StateDir string
	// Records is the directory where <container id>.json appears at each change of a container's state.
	Records string
	// Address is reported as the IP of every pod.
	Address string
	// Lower is the root filesystem that serves as every image.
	Lower string
	// Path lists directories that come first in every container's PATH.
	Path []string
	// Programs has a link for each version of Kubernetes, to a folder whose programs images of that version have.
	Programs string
	// Readable lists paths whose ancestors every user of a container may traverse.
	Readable []string
}

// server implements the CRI's runtime service; images implements its image service.
type server struct {
	cri.UnimplementedRuntimeServiceServer
	config    Config
	streaming streaming.Server

	mu         sync.Mutex
	sandboxes  map[string]*sandbox
	containers map[string]*container
}

// Serve runs the CRI server until ctx is done, and ends every container before it returns.
//
// It must run in the node's namespaces, with the node's /proc mounted. Processes that a container leaves
// behind become children of the node's first process, which has to reap them without taking the exit status
// of this process's own children.
func Serve(ctx context.Context, config Config) error {
	for _, directory := range []string{config.StateDir, config.Records} {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return err
		}
	}
	s := &server{config: config, sandboxes: map[string]*sandbox{}, containers: map[string]*container{}}
	defer s.removeAll()
	stop, err := s.startStreaming()
	if err != nil {
		return fmt.Errorf("start the server for kubectl exec: %w", err)
	}
	defer stop()
	return s.serve(ctx)
}

func (s *server) serve(ctx context.Context) error {
	if err := os.Remove(s.config.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", s.config.Socket)
	if err != nil {
		return err
	}
	// Without the wait a call could start a container after the last was removed.
	rpc := grpc.NewServer(grpc.WaitForHandlers(true))
	cri.RegisterRuntimeServiceServer(rpc, s)
	cri.RegisterImageServiceServer(rpc, &images{filesystem: s.config.StateDir})
	defer context.AfterFunc(ctx, rpc.Stop)()
	return rpc.Serve(listener)
}

// startStreaming serves the addresses that Exec and PortForward hand out, on the node's loopback.
func (s *server) startStreaming() (stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if s.streaming, err = streaming.NewServer(listener.Addr().String(), streams{s}); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	web := &http.Server{Handler: s.streaming}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = web.Serve(listener)
	}()
	return func() { _ = web.Close(); <-done }, nil
}

func (s *server) removeAll() {
	for _, c := range s.listContainers() {
		c.kill()
	}
	for _, c := range s.listContainers() {
		_ = s.removeContainer(c)
	}
}

func (s *server) Version(context.Context, *cri.VersionRequest) (*cri.VersionResponse, error) {
	return &cri.VersionResponse{
		Version:           "0.1.0",
		RuntimeName:       runtimeName,
		RuntimeVersion:    "1.0.0",
		RuntimeApiVersion: "v1",
	}, nil
}

func (s *server) Status(context.Context, *cri.StatusRequest) (*cri.StatusResponse, error) {
	return &cri.StatusResponse{Status: &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{
		{Type: cri.RuntimeReady, Status: true},
		{Type: cri.NetworkReady, Status: true},
	}}}, nil
}

func (s *server) RuntimeConfig(context.Context, *cri.RuntimeConfigRequest) (*cri.RuntimeConfigResponse, error) {
	return &cri.RuntimeConfigResponse{
		Linux: &cri.LinuxRuntimeConfiguration{CgroupDriver: cri.CgroupDriver_CGROUPFS},
	}, nil
}

func (s *server) UpdateRuntimeConfig(context.Context, *cri.UpdateRuntimeConfigRequest) (*cri.UpdateRuntimeConfigResponse, error) {
	return &cri.UpdateRuntimeConfigResponse{}, nil
}

// newID returns an identifier in the form that container runtimes use: 64 hexadecimal digits.
func newID() string {
	var id [32]byte
	_, _ = rand.Read(id[:]) // never fails, see crypto/rand
	return hex.EncodeToString(id[:])
}

// find looks an object up by its identifier, or returns the error that the kubelet takes as "gone".
func find[T any](s *server, objects map[string]T, kind, id string) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, ok := objects[id]
	if !ok {
		return object, status.Errorf(codes.NotFound, "no %s %q", kind, id)
	}
	return object, nil
}

// hasLabels says whether labels contain all of selector.
func hasLabels(labels, selector map[string]string) bool {
	for key, value := range selector {
		if actual, ok := labels[key]; !ok || actual != value {
			return false
		}
	}
	return true
}
