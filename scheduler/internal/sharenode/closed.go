package sharenode

import (
	"fmt"
	"strings"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/dialects"
	"gpushare.io/scheduler/internal/printable"
)

// maxMessage is how many bytes of a condition's message a reason has: kube-scheduler writes it into every pod that
// waits.
const maxMessage = 1024

// Why a node without a card that takes new pods is closed.
const (
	allSick     = "node(s) without a healthy GPU card"
	allCordoned = "node(s) whose GPU cards are cordoned"
)

// closedReason returns the first reason that applies, in the order in which an administrator wants to know them.
func (o *object) closedReason() string {
	if o.meta.deleted != "" {
		return "node(s) being taken out of GPU sharing"
	}
	if reason := o.spec.notServed(); reason != "" {
		return reason
	}
	for _, reason := range [...]func() string{o.notRegistered, o.draining, o.notIsolated, o.noOpenCard} {
		if found := reason(); found != "" {
			return found
		}
	}
	return ""
}

func (s *spec) notServed() string {
	var modes []string
	isServed := false
	for _, mode := range cards.NodeModes {
		modes = append(modes, mode.Name)
		isServed = isServed || mode.Name == s.Mode
	}
	if !isServed {
		mode := s.Mode
		if mode == "" {
			mode = "unknown"
		}
		return fmt.Sprintf("node(s) in mode %s, which is not served, only %s", mode, strings.Join(modes, ", "))
	}
	if dialects.Named(s.dialect) == nil {
		return fmt.Sprintf("node(s) in dialect %s, which is not served, only %s", s.dialect, dialects.Names())
	}
	return ""
}

// condition returns the first condition of a kind, nil where there is none.
func (o *object) condition(kind string) *condition {
	for place := range o.status.conditions {
		if o.status.conditions[place].kind == kind {
			return &o.status.conditions[place]
		}
	}
	return nil
}

func (o *object) notRegistered() string {
	const reason = "node(s) whose GPU cards are not registered with the kubelet yet"
	registered := o.condition("Registered")
	if registered == nil {
		return reason
	}
	if registered.status == "True" {
		return ""
	}
	if message := printable.Text(registered.message, maxMessage); message != "" {
		return reason + ": " + message
	}
	return reason
}

// draining returns a reason where the policy asks for another unit than the one in force: an amount shall mean one
// size. No reason where the asked unit was refused, and so never comes into force.
func (o *object) draining() string {
	if o.spec.unitChange == "Keep" || o.isTooFine() {
		return ""
	}
	asked := o.spec.ToCome(o.status.unit)
	if asked == "" {
		return ""
	}
	return fmt.Sprintf("node(s) that take no new pods until the pods with units of %s are gone:"+
		" the policy asks for units of %s", o.status.unit, asked)
}

func (o *object) isTooFine() bool {
	for _, condition := range o.status.conditions {
		if condition.kind == "UnitTooFine" && condition.status == "True" {
			return true
		}
	}
	return false
}

// notIsolated returns a reason where pods would run without the isolation that the policy asks for: also where the
// plugin has not heard of it yet, or is of a version that has none.
func (o *object) notIsolated() string {
	asked := o.spec.isolation
	if asked == noIsolation || asked == o.status.isolation {
		return ""
	}
	why := "the plugin does not report yet that it provides isolation " + asked
	if ready := o.condition("IsolationReady"); ready != nil && ready.status == "False" {
		why = printable.Text(ready.message, maxMessage)
	}
	return "node(s) without isolation: " + why
}

func (o *object) noOpenCard() string {
	healthy, open := 0, 0
	for place := range o.status.cards {
		card := &o.status.cards[place]
		if card.IsHealthy {
			healthy++
		}
		if card.IsOpen() {
			open++
		}
	}
	switch {
	case healthy == 0:
		return allSick
	case open == 0:
		return allCordoned
	}
	return ""
}
