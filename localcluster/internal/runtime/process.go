package runtime

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// pauseCommand waits for SIGTERM and ends without an error, as the pause image does.
var pauseCommand = []string{"/bin/sh", "-c", "trap 'exit 0' INT TERM; sleep infinity & wait"}

// process is what the programs of one container have in common: the first one and those of an exec.
type process struct {
	env        []string
	directory  string
	credential *syscall.Credential
	denied     []uintptr // capabilities
	noNewPrivs bool
}

func planProcess(config Config, container *cri.ContainerConfig, hostname string) process {
	security := container.GetLinux().GetSecurityContext()
	credential := planCredential(security)
	return process{
		env:        planEnv(config, container.GetEnvs(), credential.Uid, hostname),
		directory:  workingDirectory(container),
		credential: credential,
		denied:     deniedCapabilities(security),
		noNewPrivs: security.GetNoNewPrivs(),
	}
}

func planCredential(security *cri.LinuxContainerSecurityContext) *syscall.Credential {
	credential := &syscall.Credential{
		Uid: uint32(security.GetRunAsUser().GetValue()),
		Gid: uint32(security.GetRunAsGroup().GetValue()),
	}
	for _, group := range security.GetSupplementalGroups() {
		credential.Groups = append(credential.Groups, uint32(group))
	}
	return credential
}

// planEnv puts the variables that a container always has before those that it asks for, which win.
func planEnv(config Config, requested []*cri.KeyValue, uid uint32, hostname string) []string {
	home := "/"
	if uid == 0 {
		home = "/root"
	}
	env := map[string]string{
		"PATH":     strings.Join(append(slices.Clone(config.Path), systemPath), ":"),
		"HOME":     home,
		"HOSTNAME": hostname,
	}
	for _, variable := range requested {
		env[variable.GetKey()] = string(variable.GetValue())
	}
	list := make([]string, 0, len(env))
	for key, value := range env {
		list = append(list, key+"="+value)
	}
	slices.Sort(list)
	return list
}

func workingDirectory(container *cri.ContainerConfig) string {
	return filepath.Join("/", container.GetWorkingDir())
}

// commandLine returns what a container runs. Images name no program here, except the pause image.
func commandLine(container *cri.ContainerConfig) []string {
	line := slices.Concat(container.GetCommand(), container.GetArgs())
	image, _, _ := strings.Cut(path.Base(container.GetImage().GetImage()), ":")
	if len(line) == 0 || image == "pause" {
		return pauseCommand
	}
	return line
}

// launch starts cmd from the calling thread, which must be in the container and is good for nothing after.
// A program that does not exist is reported as exec.ErrNotFound.
func (p process) launch(cmd *exec.Cmd) error {
	program, err := p.lookUp(cmd.Args[0])
	if err != nil {
		return err
	}
	if err := p.confine(); err != nil {
		return err
	}
	cmd.Path, cmd.Err = program, nil
	cmd.Env, cmd.Dir = append(cmd.Env, p.env...), p.directory
	cmd.SysProcAttr.Setsid = true
	cmd.SysProcAttr.Credential = p.credential
	return cmd.Start()
}

// lookUp finds a program in the calling thread's root directory.
func (p process) lookUp(name string) (string, error) {
	candidates := []string{name}
	switch {
	case !strings.Contains(name, "/"):
		candidates = p.searchPath(name)
	case !filepath.IsAbs(name):
		candidates = []string{filepath.Join(p.directory, name)}
	}
	for _, candidate := range candidates {
		if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return candidate, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

func (p process) searchPath(name string) (candidates []string) {
	for _, variable := range p.env {
		if value, ok := strings.CutPrefix(variable, "PATH="); ok {
			for _, directory := range filepath.SplitList(value) {
				candidates = append(candidates, filepath.Join(directory, name))
			}
		}
	}
	return candidates
}

// confine takes privileges from the programs that the calling thread starts.
func (p process) confine() error {
	for _, capability := range p.denied {
		// EINVAL: this kernel is too old to know the capability.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && err != unix.EINVAL {
			return fmt.Errorf("drop capability %s: %w", capabilityNames[capability], err)
		}
	}
	if !p.noNewPrivs {
		return nil
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// exitCode returns a process's exit status as a shell has it: 128 and the signal's number after a signal.
// The status is nil if another part of the node's first process has taken it.
func exitCode(state *os.ProcessState) int32 {
	if state == nil {
		return 255
	}
	status := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int32(status.Signal())
	}
	return int32(status.ExitStatus())
}
