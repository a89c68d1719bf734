//go:build !before1.36

package plugin

import "k8s.io/client-go/tools/events"

func recorder(string) events.EventRecorderLogger { return &events.FakeRecorder{} }
