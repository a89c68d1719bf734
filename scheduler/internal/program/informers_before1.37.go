//go:build before1.37

package program

import "k8s.io/kubernetes/cmd/kube-scheduler/app/options"

// nameInformers does nothing: their metrics have no names.
func nameInformers(*options.Options) error { return nil }
