package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"gpushare.io/localcluster/internal/runtime"
)

const (
	kubeletPatience = 5 * time.Second
	// restartPause keeps a kubelet that cannot start from taking the machine's processors.
	restartPause   = time.Second
	socketPatience = 30 * time.Second
)

// RunAgent serves containers to the kubelet and keeps the kubelet alive, until SIGTERM switches the node off.
func RunAgent() error {
	settings, err := readSettings()
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- serveContainers(ctx, settings) }()
	if err := awaitSocket(); err != nil {
		return errors.Join(err, pending(served))
	}
	if err := importImages(settings); err != nil {
		return errors.Join(err, pending(served))
	}
	keeper := newKubeletKeeper(kubeletFlags(settings))
	go keeper.run()
	if err := handleSignals(keeper, served); err != nil {
		return err
	}
	keeper.stop()
	if err := stopContainers(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "stop containers:", err)
	}
	cancel()
	return <-served
}

func serveContainers(ctx context.Context, settings Settings) error {
	if settings.Containerd.IsUsed() {
		return runContainerd(ctx, settings)
	}
	return runtime.Serve(ctx, runtimeConfig(settings))
}

func pending(errors <-chan error) error {
	select {
	case err := <-errors:
		return err
	default:
		return nil
	}
}

func runtimeConfig(settings Settings) runtime.Config {
	return runtime.Config{
		Socket:   criSocket,
		Node:     settings.Name,
		StateDir: stateFolder,
		Records:  recordFolder,
		Address:  settings.Address,
		Lower:    imageFolder,
		Path:     settings.Image.Path,
		Programs: filepath.Join(imageFolder, settings.Programs),
		Readable: settings.Image.Readable,
	}
}

func awaitSocket() error {
	for deadline := time.Now().Add(socketPatience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(criSocket); err == nil {
			return nil
		}
	}
	return fmt.Errorf("the container runtime did not open %s in %s", criSocket, socketPatience)
}

// handleSignals returns when the machine is switched off; an error means that the runtime ended by itself.
func handleSignals(keeper *kubeletKeeper, served <-chan error) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, passedOn...)
	for {
		select {
		case received := <-signals:
			switch received {
			case syscall.SIGTERM:
				return nil
			case RestartKubelet:
				keeper.kill()
			case StopKubelet:
				keeper.hold()
			case StartKubelet:
				keeper.release()
			}
		case err := <-served:
			return fmt.Errorf("the container runtime ended: %w", err)
		}
	}
}

func kubeletFlags(settings Settings) []string {
	return append([]string{
		"--config=" + kubeletConfiguration,
		"--kubeconfig=/etc/kubernetes/kubelet.conf",
		"--hostname-override=" + settings.Name,
		"--node-ip=" + settings.Address,
	}, settings.KubeletFlags...)
}
