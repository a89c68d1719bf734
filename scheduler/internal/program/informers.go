//go:build !before1.37

package program

import (
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// nameInformers names them in the metrics.
func nameInformers(own *options.Options) error {
	if own.InformerName != nil {
		return nil
	}
	name, err := cache.NewInformerName("kube-scheduler")
	own.InformerName = name
	return err
}
