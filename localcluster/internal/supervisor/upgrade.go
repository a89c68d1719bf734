package supervisor

import (
	"errors"
	"fmt"
	"time"
)

// componentPatience is above the minute that the apiserver gives requests under way.
const componentPatience = 90 * time.Second

// Upgrade is what POST /control-plane/upgrade takes.
type Upgrade struct {
	// Program is what components are started from.
	Program string `json:"program"`
	// Version is the one of kube-scheduler's image.
	Version string `json:"version"`
}

// upgrade replaces the components but etcd, one after the other, and then kube-scheduler's manifests, as
// `kubeadm upgrade apply` does. Kubelets stay as they are.
func (i *inner) upgrade(wanted Upgrade) error {
	for _, name := range []string{apiserver, controllerManager} {
		if err := i.replace(name, wanted.Program); err != nil {
			return err
		}
		if err := awaitAPI(i.context, i.client); err != nil {
			return err
		}
	}
	var failures []error
	for _, machine := range i.machines.list() {
		if machine.ControlPlane {
			failures = append(failures, i.machines.writeSchedulerManifest(machine, wanted.Version))
		}
	}
	return errors.Join(failures...)
}

// replace returns when the component runs from the other program.
func (i *inner) replace(name, program string) error {
	before := i.components.pids()[name]
	if err := i.components.replace(name, program); err != nil {
		return err
	}
	for deadline := time.Now().Add(componentPatience); time.Now().Before(deadline); time.Sleep(pollInterval) {
		if pid := i.components.pids()[name]; pid != 0 && pid != before {
			return nil
		}
	}
	return fmt.Errorf("%s has not ended within %s", name, componentPatience)
}
