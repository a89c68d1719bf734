package supervisor

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gpushare.io/localcluster/internal/config"
)

const (
	cgroupFolder = "/sys/fs/cgroup"
	// cgroupPatience is how long the kernel may take to forget processes that have ended.
	cgroupPatience = 10 * time.Second
)

// clusterCgroup names the cgroup of a cluster's pods, below which every node has its own.
func clusterCgroup(directory config.Directory) string {
	return fmt.Sprintf("localcluster-%x", sha256.Sum256([]byte(directory)))[:len("localcluster-")+12]
}

// cgroup is that of a machine's pods; empty where containers are no real ones.
func (ms *machines) cgroup(m *machine) string {
	if !ms.cluster.Containerd.IsUsed() {
		return ""
	}
	return "/" + clusterCgroup(ms.cluster.Directory) + "/" + m.Name
}

// makeCgroup makes a cgroup in every hierarchy, since the kubelet expects the one above its own.
func makeCgroup(name string) error {
	if name == "" {
		return nil
	}
	for _, hierarchy := range cgroupHierarchies() {
		if err := os.MkdirAll(filepath.Join(hierarchy, name), 0o755); err != nil {
			return fmt.Errorf("make a cgroup for the node's pods: %w", err)
		}
		if err := delegate(hierarchy, name); err != nil {
			return err
		}
	}
	return nil
}

// delegate lets the groups above a cgroup of version 2 pass on every controller. Version 1 knows no such thing.
func delegate(hierarchy, name string) error {
	controllers, err := os.ReadFile(filepath.Join(hierarchy, "cgroup.controllers"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	wanted := ""
	for _, controller := range strings.Fields(string(controllers)) {
		wanted += " +" + controller
	}
	folder := hierarchy
	for _, part := range append(strings.Split(strings.Trim(name, "/"), "/"), "") {
		if err := os.WriteFile(filepath.Join(folder, "cgroup.subtree_control"), []byte(wanted), 0o644); err != nil {
			return fmt.Errorf("pass on cgroup controllers below %s: %w", folder, err)
		}
		folder = filepath.Join(folder, part)
	}
	return nil
}

// cgroupHierarchies are the mounted trees of cgroups: one of version 2, or several of version 1 (and perhaps one of
// version 2 beside them).
func cgroupHierarchies() []string {
	if _, err := os.Stat(filepath.Join(cgroupFolder, "cgroup.controllers")); err == nil {
		return []string{cgroupFolder}
	}
	entries, _ := os.ReadDir(cgroupFolder)
	var found []string
	for _, entry := range entries {
		if path := filepath.Join(cgroupFolder, entry.Name()); entry.IsDir() && isCgroup(path) {
			found = append(found, path)
		}
	}
	return found
}

func isCgroup(path string) bool {
	_, err := os.Stat(filepath.Join(path, "cgroup.procs"))
	return err == nil
}

// removeCgroups takes away the cgroups of a cluster whose processes have ended.
func removeCgroups(directory config.Directory) error {
	var failures []error
	for _, hierarchy := range cgroupHierarchies() {
		failures = append(failures, removeTree(filepath.Join(hierarchy, clusterCgroup(directory))))
	}
	return errors.Join(failures...)
}

func removeTree(root string) error {
	var folders []string
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		return nil
	})
	slices.Reverse(folders)
	for _, folder := range folders {
		if err := removeCgroup(folder); err != nil {
			return err
		}
	}
	return nil
}

func removeCgroup(folder string) error {
	for deadline := time.Now().Add(cgroupPatience); ; time.Sleep(20 * time.Millisecond) {
		err := unix.Rmdir(folder)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("remove cgroup %s: %w", folder, err)
		}
	}
}
