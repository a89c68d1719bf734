package bindlease

import (
	"math"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// releasedSeconds is the duration of a Lease that its holder gave back; client-go's leader election writes the same.
const releasedSeconds = 1

// record is what a Lease says; the zero record that there is none.
type record struct {
	version string
	holding holding
	seconds int32
}

// holding stays the same until somebody else takes the Lease, whoever else writes to it.
type holding struct {
	holder      string
	transitions int32
	acquired    string
}

func recordOf(lease *coordinationv1.Lease) record {
	if lease == nil {
		return record{}
	}
	spec, read := &lease.Spec, record{version: lease.ResourceVersion}
	read.holding.holder, read.seconds = valueOf(spec.HolderIdentity), valueOf(spec.LeaseDurationSeconds)
	read.holding.transitions = valueOf(spec.LeaseTransitions)
	if spec.AcquireTime != nil {
		read.holding.acquired = spec.AcquireTime.UTC().Format(metav1.RFC3339Micro)
	}
	return read
}

func valueOf[T any](pointer *T) (value T) {
	if pointer != nil {
		value = *pointer
	}
	return value
}

// held returns the Lease as identity takes or renews it, to be written over before, which is nil where there is none.
func held(before *coordinationv1.Lease, identity string, duration time.Duration, now time.Time) *coordinationv1.Lease {
	lease, micro, seconds := copyOf(before), metav1.NewMicroTime(now), int32(duration/time.Second)
	transitions, acquired := valueOf(lease.Spec.LeaseTransitions), &micro
	switch {
	case before == nil:
	case valueOf(lease.Spec.HolderIdentity) != identity:
		transitions = min(transitions, math.MaxInt32-1) + 1
	case lease.Spec.AcquireTime != nil:
		acquired = lease.Spec.AcquireTime
	}
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: &identity, LeaseDurationSeconds: &seconds, AcquireTime: acquired, RenewTime: &micro,
		LeaseTransitions: &transitions,
	}
	return lease
}

// released returns the Lease without a holder, to be written over before.
func released(before *coordinationv1.Lease, now time.Time) *coordinationv1.Lease {
	lease, micro, seconds := copyOf(before), metav1.NewMicroTime(now), int32(releasedSeconds)
	lease.Spec = coordinationv1.LeaseSpec{
		LeaseDurationSeconds: &seconds, RenewTime: &micro, LeaseTransitions: lease.Spec.LeaseTransitions,
	}
	return lease
}

func copyOf(before *coordinationv1.Lease) *coordinationv1.Lease {
	if before == nil {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: Name}}
	}
	return before.DeepCopy()
}

// observer watches for how long others may rely on the Lease. Only our own clock counts: a Lease has expired once we
// have seen no change of it for its duration.
type observer struct {
	identity string
	// duration is that of a Lease that does not say one, or that was deleted.
	duration time.Duration
	hasSeen  bool
	seen     record
	since    time.Duration
	// reliedOn is for how long from since others may rely on it.
	reliedOn time.Duration
}

// observe says that the Lease was read at some time.
func (o *observer) observe(read record, now time.Duration) {
	if !o.hasSeen || read != o.seen {
		o.reliedOn = o.reliance(read)
		o.hasSeen, o.seen, o.since = true, read, now
	}
}

// reliance returns for how long others may rely on a Lease that has just become so:
//
//  1. there is none: as before, at least duration. It comes with the manifests, so it may have been deleted while held.
//  2. it is held by us, or was given back: not at all.
//  3. it is held by another one: for its duration.
//  4. it has no holder otherwise: as before, for helm upgrade --force empties a Lease that is held.
func (o *observer) reliance(read record) time.Duration {
	switch {
	case read == record{}:
		return max(o.reliedOn, o.duration)
	case read.holding.holder == o.identity:
		return 0
	case read.holding.holder != "" && read.seconds > 0:
		return time.Duration(read.seconds) * time.Second
	case read.holding.holder != "":
		return o.duration
	case read.seconds == releasedSeconds:
		return 0
	}
	return o.reliedOn
}

// left returns for how long others may still rely on the Lease; 0 when we may take it.
func (o *observer) left(now time.Duration) time.Duration {
	if !o.hasSeen {
		return o.duration
	}
	return max(0, o.since+o.reliedOn-now)
}
