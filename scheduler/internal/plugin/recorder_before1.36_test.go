//go:build before1.36

package plugin

import "k8s.io/client-go/tools/events"

func recorder(string) events.EventRecorder { return &events.FakeRecorder{} }
