package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"gpushare.io/localcluster/internal/config"
	"gpushare.io/localcluster/internal/network"
)

const (
	containerdFolder        = "/var/lib/containerd"
	containerdConfiguration = "/etc/containerd/config.toml"
	containerdLog           = "/var/log/containerd.log"
	networkConfiguration    = "/etc/cni/net.d/10-pods.conflist"
	// kubernetesImages is where the kubelet finds images: containerd keeps several users' apart.
	kubernetesImages = "k8s.io"
)

// containerdTOML leaves a container's oom_score_adj within what this process may set: in a machine that is a
// container itself it may not lower it.
const containerdTOML = `version = 3
[grpc]
address = "` + criSocket + `"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "` + config.PauseImage + `"
[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = [%q]
conf_dir = "/etc/cni/net.d"
use_internal_loopback = true
`

// networkJSON connects the pods of a node by a bridge. Nothing is translated: the control plane has routes to them.
const networkJSON = `{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": false,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}}
]}
`

// runContainerd runs containerd in the node until ctx ends.
func runContainerd(ctx context.Context, settings Settings) error {
	if err := configureContainerd(settings); err != nil {
		return err
	}
	log, err := os.OpenFile(containerdLog, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	containerd := exec.CommandContext(ctx, program(settings, "containerd"), "--config", containerdConfiguration)
	containerd.Env = append(os.Environ(), programPath(settings))
	containerd.Stdout, containerd.Stderr = log, log
	containerd.Cancel = func() error { return containerd.Process.Signal(syscall.SIGTERM) }
	if err := containerd.Run(); ctx.Err() == nil {
		return fmt.Errorf("containerd: %w, see %s", err, containerdLog)
	}
	return nil
}

func configureContainerd(settings Settings) error {
	files := map[string]string{
		containerdConfiguration: fmt.Sprintf(containerdTOML, filepath.Join(imageFolder, settings.Containerd.Plugins)),
		networkConfiguration:    fmt.Sprintf(networkJSON, network.PodRange(settings.Index)),
	}
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// program is where the node finds a program of containerd's.
func program(settings Settings, name string) string {
	return filepath.Join(imageFolder, settings.Containerd.Programs[0], name)
}

// programPath lets containerd find its shim and runc, and those what the host has.
func programPath(settings Settings) string {
	var folders []string
	for _, folder := range settings.Containerd.Programs {
		folders = append(folders, filepath.Join(imageFolder, folder))
	}
	return "PATH=" + strings.Join(append(folders, os.Getenv("PATH")), ":")
}

// importImages puts archives where the kubelet finds them: nothing is pulled.
func importImages(settings Settings) error {
	for _, archive := range settings.Containerd.Images {
		source := filepath.Join(imageFolder, archive)
		arguments := []string{"--address", criSocket, "--namespace", kubernetesImages, "images", "import", source}
		if output, err := exec.Command(program(settings, "ctr"), arguments...).CombinedOutput(); err != nil {
			return fmt.Errorf("import image %s: %w: %s", archive, err, output)
		}
	}
	return nil
}
