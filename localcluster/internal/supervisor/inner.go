package supervisor

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/kubernetes"

	"gpushare.io/localcluster/internal/config"
	"gpushare.io/localcluster/internal/network"
)

const apiPort = 443

// inner is the state of the running cluster.
type inner struct {
	cluster    config.Cluster
	pki        *clusterPKI
	components *components
	machines   *machines
	client     kubernetes.Interface
	// context lasts as long as the cluster.
	context context.Context
	// booted is closed when every configured node was switched on.
	booted chan struct{}
}

// RunInner is process 1 of a cluster; it returns only when the cluster cannot go on.
func RunInner() error {
	cluster, err := config.Read(os.Args[1])
	if err != nil {
		return err
	}
	listener, err := net.FileListener(os.NewFile(listenerDescriptor, "api"))
	if err != nil {
		return err
	}
	if err := isolate(); err != nil {
		return err
	}
	pki, err := createPKI(cluster.Directory, listener.Addr().(*net.TCPAddr))
	if err != nil {
		return err
	}
	client, err := pki.client()
	if err != nil {
		return err
	}
	i := &inner{
		cluster:    cluster,
		pki:        pki,
		components: newComponents(cluster),
		machines:   newMachines(cluster, pki, client),
		client:     client,
		context:    context.Background(),
		booted:     make(chan struct{}),
	}
	go relay(listener)
	return i.run()
}

func isolate() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return network.SetUpControlPlane()
}

func (i *inner) run() error {
	control, err := net.Listen("unix", i.cluster.Directory.Control())
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- serveControl(control, i) }()
	go func() {
		if err := i.start(); err != nil {
			failed <- err
		}
	}()
	select {
	case err := <-failed:
		return err
	case err := <-i.components.failed:
		return err
	}
}

func (i *inner) start() error {
	for _, name := range []string{etcd, apiserver} {
		if err := i.components.start(name); err != nil {
			return err
		}
	}
	if err := awaitAPI(i.context, i.client); err != nil {
		return err
	}
	if !i.cluster.Containerd.IsUsed() {
		if err := refusePodLevelResources(i.context, i.client); err != nil {
			return err
		}
	}
	if err := i.components.start(controllerManager); err != nil {
		return err
	}
	for _, node := range i.cluster.Nodes {
		if err := i.machines.add(i.context, node); err != nil {
			return err
		}
	}
	close(i.booted)
	return nil
}

func (i *inner) hasBooted() bool {
	select {
	case <-i.booted:
		return true
	default:
		return false
	}
}

// relay passes connections from the host's address on to the apiserver, which lives in another network.
func relay(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer client.Close()
			server, err := net.Dial("tcp", net.JoinHostPort(network.Gateway, fmt.Sprint(apiPort)))
			if err != nil {
				return
			}
			defer server.Close()
			go func() {
				_, _ = io.Copy(server, client)
				_ = server.(*net.TCPConn).CloseWrite()
			}()
			_, _ = io.Copy(client, server)
		}()
	}
}
