package bindlease

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// server is an API server with the one Lease, or without it.
type server struct {
	mutex   sync.Mutex
	lease   *coordinationv1.Lease
	version int
	writes  int
	failure error
	// after is called after a write, which may lose its answer.
	after func() error
}

func (s *server) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch {
	case s.failure != nil:
		return nil, s.failure
	case s.lease == nil:
		return nil, apierrors.NewNotFound(leases, Name)
	}
	return s.lease.DeepCopy(), nil
}

func (s *server) Update(
	_ context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions,
) (*coordinationv1.Lease, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.failure != nil {
		return nil, s.failure
	}
	present := ""
	if s.lease != nil {
		present = s.lease.ResourceVersion
	}
	if lease.ResourceVersion != present {
		return nil, apierrors.NewConflict(leases, Name, errors.New("the object has been modified"))
	}
	s.set(lease)
	if s.after != nil {
		if err := s.after(); err != nil {
			return nil, err
		}
	}
	return s.lease.DeepCopy(), nil
}

func (s *server) set(lease *coordinationv1.Lease) {
	s.lease = lease.DeepCopy()
	s.version++
	s.writes++
	s.lease.ResourceVersion = strconv.Itoa(s.version)
}

// write has another one write the Lease.
func (s *server) write(change func(*coordinationv1.Lease)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	lease := copyOf(s.lease)
	change(lease)
	s.set(lease)
}

func (s *server) holder() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return recordOf(s.lease).holding.holder
}

func heldBy(identity string) func(*coordinationv1.Lease) {
	return func(lease *coordinationv1.Lease) {
		*lease = *held(lease, identity, RealTiming().Duration, time.Unix(0, 0))
	}
}

// desk is a Lease of which each look is made by hand, and whose clock goes by hand.
type desk struct {
	*Lease
	t     *testing.T
	now   time.Duration
	reads int
	taken int
	// isGone says that nobody waits for the Lease any more.
	isGone bool
	// read is what reading what is bound answers.
	read error
}

func newDesk(t *testing.T, server *server, identity string) *desk {
	t.Helper()
	d := &desk{t: t, now: time.Hour}
	d.Lease = New(Config{
		Client: server, Identity: identity, Timing: RealTiming(),
		Clock:     Clock{func() time.Duration { return d.now }, func() time.Time { return time.Unix(0, 0).Add(d.now) }},
		TakeOver:  func(context.Context) error { d.reads++; return d.read },
		Taken:     func() { d.taken++ },
		IsAwaited: func() bool { return !d.isGone },
	})
	return d
}

// ask asks for the Lease, as Hold, without waiting.
func (d *desk) ask() (uint64, error) {
	holding, _, err := d.permit()
	return holding, err
}

// tick has the Lease looked after once.
func (d *desk) tick() error {
	err := d.lookAfter(context.Background())
	d.ended(err)
	return err
}

// take asks for the Lease, and looks after it.
func (d *desk) take() (uint64, error) {
	_, _ = d.ask()
	_ = d.tick()
	return d.ask()
}

func (d *desk) mustTake() uint64 {
	d.t.Helper()
	holding, err := d.take()
	if err != nil {
		d.t.Fatal(err)
	}
	return holding
}

func (d *desk) begin(holding uint64) Use {
	d.t.Helper()
	use, err := d.Begin(holding)
	if err != nil {
		d.t.Fatal(err)
	}
	return use
}

func TestNobodyHoldsWhatHeDoesNotUse(t *testing.T) {
	server := &server{}
	d := newDesk(t, server, "a")
	if err := d.tick(); err != nil || server.writes > 0 {
		t.Errorf("error %v, %d writes", err, server.writes)
	}
	if _, err := d.ask(); err == nil {
		t.Error("it is held although nobody took it")
	}
}

func TestWhatIsBoundIsReadBeforeTheFirstBinding(t *testing.T) {
	server := free()
	d := newDesk(t, server, "a")
	d.read = errors.New("no")
	if _, err := d.take(); !errors.Is(err, d.read) {
		t.Errorf("error: %v", err)
	}
	d.read = nil
	if d.mustTake() == 0 || d.reads != 2 {
		t.Errorf("read %d times", d.reads)
	}
	d.mustTake()
	if d.reads != 2 {
		t.Errorf("read %d times", d.reads)
	}
}

func TestWhileAnotherHoldsItNobodyBinds(t *testing.T) {
	server := free()
	a, b := newDesk(t, server, "a"), newDesk(t, server, "b")
	a.mustTake()
	for range 10 {
		a.mustTake()
		if _, err := b.take(); err == nil || !strings.Contains(err.Error(), "a binds pods") {
			t.Fatalf("error: %v", err)
		}
		a.now += a.Timing.Renew
		b.now += b.Timing.Renew
	}
	if a.reads != 1 {
		t.Errorf("read %d times", a.reads)
	}
}

// The last Binding of one that was killed was sent while its Lease lasted for Uncertain.
func TestOfAKilledOneItExpires(t *testing.T) {
	server := free()
	a, b := newDesk(t, server, "a"), newDesk(t, server, "b")
	a.mustTake()
	if err := b.tick(); err != nil { // stands by
		t.Fatal(err)
	}
	last := time.Duration(0) // when a could still send
	for _, err := a.ask(); err == nil; _, err = a.ask() {
		last = a.now
		a.now += time.Second
	}
	b.now = last
	for {
		if _, err := b.take(); err == nil {
			break
		}
		b.now += time.Second
	}
	if waited := b.now - last; waited < b.Timing.Uncertain || waited > b.Timing.Uncertain+2*time.Second {
		t.Errorf("b binds %s after a could send its last Binding", waited)
	}
	if b.reads != 1 {
		t.Errorf("read %d times", b.reads)
	}
	a.now = b.now
	_ = a.tick()
	if _, err := a.ask(); err == nil {
		t.Error("a binds, too")
	}
}

func TestItIsGivenBackOnceNoBindingIsUnderWay(t *testing.T) {
	server := free()
	a, b := newDesk(t, server, "a"), newDesk(t, server, "b")
	use := a.begin(a.mustTake())
	for range 20 {
		a.now += a.Timing.Renew
		if err := a.tick(); err != nil || server.holder() != "a" {
			t.Fatalf("error %v, holder %q", err, server.holder())
		}
	}
	use.End()
	a.now += a.Timing.Idle - 1
	if err := a.tick(); err != nil || server.holder() != "a" {
		t.Fatalf("error %v, holder %q", err, server.holder())
	}
	a.now++
	if err := a.tick(); err != nil || server.holder() != "" {
		t.Fatalf("error %v, holder %q", err, server.holder())
	}
	if _, err := a.ask(); err == nil {
		t.Error("it is given back, and still held")
	}
	b.mustTake()
}

func TestItsFormerHolderReadsNothingWhereNobodyElseHadIt(t *testing.T) {
	server := free()
	a := newDesk(t, server, "a")
	first := a.mustTake()
	a.now += a.Timing.Idle
	_ = a.tick()
	if server.holder() != "" {
		t.Fatal("it is held")
	}
	if again := a.mustTake(); again != first || a.reads != 1 {
		t.Errorf("holding %d, then %d; read %d times", first, again, a.reads)
	}
}

func TestABindingOfAnEarlierHoldingIsNotSent(t *testing.T) {
	server := free()
	a, b := newDesk(t, server, "a"), newDesk(t, server, "b")
	first := a.mustTake()
	a.now += a.Timing.Idle
	_ = a.tick()
	b.mustTake()
	b.now += b.Timing.Idle
	_ = b.tick()
	if second := a.mustTake(); second == first || a.reads != 2 {
		t.Errorf("holding %d, then %d; read %d times", first, second, a.reads)
	}
	if err := a.begin(first).Permit(context.Background()); !errors.Is(err, errTaken) {
		t.Errorf("error: %v", err)
	}
}

// The machine may be suspended between two instructions: when it goes on, the Lease is another's.
func TestNothingIsSentAfterASuspension(t *testing.T) {
	server := free()
	a, b := newDesk(t, server, "a"), newDesk(t, server, "b")
	use := a.begin(a.mustTake())
	_ = b.tick()
	b.now += b.Timing.Duration
	b.mustTake()
	a.now = b.now
	if _, err := a.ask(); err == nil {
		t.Error("a may send")
	}
	_ = a.tick()
	if err := use.Permit(context.Background()); err == nil {
		t.Error("a may send")
	}
}

func TestAMissingLeaseIsMade(t *testing.T) {
	server := &server{}
	d := newDesk(t, server, "a")
	if _, err := d.take(); err == nil {
		t.Fatal("somebody may have held what was deleted")
	}
	d.now += d.Timing.Duration
	d.mustTake()
	server.lease = nil
	d.now += d.Timing.Renew
	if holding := d.mustTake(); holding != 2 || server.holder() != "a" {
		t.Errorf("holding %d, holder %q", holding, server.holder())
	}
}

func TestAnEmptiedLeaseIsReliedOn(t *testing.T) {
	server := free()
	a, b := newDesk(t, server, "a"), newDesk(t, server, "b")
	a.mustTake()
	_ = b.tick()
	server.write(func(lease *coordinationv1.Lease) { lease.Spec = coordinationv1.LeaseSpec{} })
	if _, err := b.take(); err == nil || !strings.Contains(err.Error(), "was emptied") {
		t.Errorf("error: %v", err)
	}
	b.now += b.Timing.Duration
	b.mustTake()
}

// A write whose answer is lost has taken effect, or has not: neither makes two holders.
func TestALostAnswer(t *testing.T) {
	server := free()
	a, b := newDesk(t, server, "a"), newDesk(t, server, "b")
	server.after = func() error { return errors.New("connection reset") }
	if _, err := a.take(); err == nil {
		t.Error("it is held although nobody knows of it")
	}
	if _, err := b.take(); err == nil {
		t.Error("held by two")
	}
	server.after = nil
	a.mustTake()
}

func TestALeaseThatCannotBeReadIsNotTaken(t *testing.T) {
	server := &server{failure: apierrors.NewForbidden(leases, Name, errors.New("no right"))}
	d := newDesk(t, server, "a")
	if _, err := d.take(); err == nil || !strings.Contains(err.Error(), "cannot read the Lease gpushare-extender") {
		t.Errorf("error: %v", err)
	}
}

func TestARenewalThatFailsOnceStopsNobody(t *testing.T) {
	server := free()
	d := newDesk(t, server, "a")
	d.mustTake()
	d.now += d.Timing.Renew
	server.failure = errors.New("connection refused")
	if d.tick() == nil {
		t.Error("no error")
	}
	if _, err := d.ask(); err != nil {
		t.Errorf("error: %v", err)
	}
	d.now += d.Timing.Renew + 1
	if _, err := d.ask(); err == nil {
		t.Error("it does not last for Uncertain")
	}
	server.failure = nil
	d.mustTake()
	if d.reads != 1 {
		t.Errorf("read %d times", d.reads)
	}
}

func TestWhoWasRefusedIsToldThatItIsTaken(t *testing.T) {
	server := &server{}
	server.write(heldBy("x"))
	d := newDesk(t, server, "a")
	if _, err := d.take(); err == nil || d.taken > 0 {
		t.Fatalf("error %v, taken %d times", err, d.taken)
	}
	d.now += d.Timing.Duration
	d.mustTake()
	d.now += d.Timing.Renew
	d.mustTake()
	if d.taken != 1 {
		t.Errorf("told %d times", d.taken)
	}
}

// The scheduler may not ask again by itself.
func TestWhoWasRefusedIsToldHoweverLateTheLeaseIsTaken(t *testing.T) {
	server := &server{}
	server.write(heldBy("x"))
	d := newDesk(t, server, "a")
	if _, err := d.take(); err == nil {
		t.Fatal("held by two")
	}
	d.now += d.Timing.Idle + d.Timing.Duration
	if err := d.tick(); err != nil || d.taken != 1 {
		t.Errorf("error %v, told %d times", err, d.taken)
	}
	if err := d.tick(); err != nil || server.holder() != "" {
		t.Errorf("error %v: nobody uses it, and %q holds it", err, server.holder())
	}
}

func TestTheLeaseIsLeftToOthersOnceThoseAreGoneWhoWereRefused(t *testing.T) {
	server := &server{}
	server.write(heldBy("x"))
	d := newDesk(t, server, "a")
	if _, err := d.take(); err == nil {
		t.Fatal("held by two")
	}
	d.isGone = true
	d.now += d.Timing.Idle + d.Timing.Duration
	if err := d.tick(); err != nil || server.holder() != "x" {
		t.Errorf("error %v, and %q holds it", err, server.holder())
	}
}
