// Package metrics has what kube-scheduler's /metrics says of cards: which pods wait and why, what was bound, and what
// is free.
//
// The names are the extender's wherever they mean the same, so that one dashboard and one set of alerts serve both
// engines. How long attempts and evictions take, kube-scheduler's own metrics say.
package metrics

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	kube "k8s.io/component-base/metrics"

	"gpushare.io/scheduler/internal/bindlease"
	"gpushare.io/scheduler/internal/ledger"
)

const (
	// The ways in which a bind ends.
	bound   = "Bound"
	refused = "Refused"
	noLease = "NoLease"
	// goneTime is in which kube-scheduler tries a pod again that fits nowhere: a pod that it does not try any more is
	// gone. See podMaxInUnschedulablePodsDuration of kube-scheduler, 300 s, looked at every 30 s.
	goneTime = 400 * time.Second
	// shownTime is in which a watch shows that a pod is bound.
	shownTime = time.Minute
)

// Version is that of gpushare. The linker sets it.
var Version = "unknown"

// Readings are what is read whenever somebody asks for the metrics.
type Readings struct {
	// Nodes is how many nodes take pods that ask for an extended resource, by its name.
	Nodes map[string]int
	// LargestFree is the greatest request, in units, that one of them takes.
	LargestFree map[string]int64
	// Reserved are the UIDs of the pods that have units and that no watch shows as bound yet.
	Reserved []types.UID
	// Watches are by the collection that they show.
	Watches map[string]Watch
}

// Watch is the state of a watch.
type Watch struct {
	// IsListed says whether all is known that was there at the start.
	IsListed bool
	// Silence is the time since the last sign of the API server.
	Silence time.Duration
}

// Metrics counts what happens. Methods may be called from several goroutines.
type Metrics struct {
	kube.BaseStableCollector
	now  func() time.Time
	read func() Readings

	mutex sync.Mutex
	// refusals are attempts that found no node, by reason.
	refusals map[ledger.Kind]int
	// binds are those that ended, by result.
	binds    map[string]int
	underWay int
	// waiting are the pods that fitted no node at their last attempt.
	waiting map[types.UID]wait
	// boundAt is when pods were bound that no watch shows as bound yet.
	boundAt map[types.UID]time.Time
}

type wait struct {
	since, tried time.Time
	reasons      []ledger.Kind
}

// New returns Metrics of nothing. It calls read whenever somebody asks for them.
func New(now func() time.Time, read func() Readings) *Metrics {
	return &Metrics{
		now: now, read: read, refusals: map[ledger.Kind]int{}, binds: map[string]int{},
		waiting: map[types.UID]wait{}, boundAt: map[types.UID]time.Time{},
	}
}

// Refused says that an attempt of a pod has found no node, for reasons of these kinds, each once. Without any the cards
// are not the reason.
func (m *Metrics) Refused(uid types.UID, reasons []ledger.Kind) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, reason := range reasons {
		m.refusals[reason]++
	}
	if len(reasons) == 0 {
		delete(m.waiting, uid)
		return
	}
	now := m.now()
	since := now
	if before, waits := m.waiting[uid]; waits && now.Sub(before.tried) < goneTime {
		since = before.since
	}
	m.waiting[uid] = wait{since, now, withoutOthersNodes(reasons)}
}

// withoutOthersNodes leaves out that nodes share no cards, unless that is the only reason: nearly every cluster has such
// nodes.
func withoutOthersNodes(reasons []ledger.Kind) []ledger.Kind {
	if len(reasons) == 1 {
		return reasons
	}
	kept := make([]ledger.Kind, 0, len(reasons))
	for _, reason := range reasons {
		if reason != ledger.NotShared {
			kept = append(kept, reason)
		}
	}
	return kept
}

// Fits says that a pod has a node, and its units.
func (m *Metrics) Fits(uid types.UID) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.waiting, uid)
}

// Shown says that a watch shows a pod as bound, or as gone.
func (m *Metrics) Shown(uid types.UID) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.waiting, uid)
	delete(m.boundAt, uid)
}

// Bind says that a pod is being bound. What it returns is to be called once, with how that ended.
func (m *Metrics) Bind(uid types.UID) (ended func(err error)) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.underWay++
	return func(err error) {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		m.underWay--
		m.binds[resultOf(err)]++
		if err == nil {
			m.boundAt[uid] = m.now()
		}
	}
}

func resultOf(err error) string {
	var notHeld bindlease.NotHeldError
	switch {
	case err == nil:
		return bound
	case errors.As(err, &notHeld):
		return noLease
	}
	return refused
}
