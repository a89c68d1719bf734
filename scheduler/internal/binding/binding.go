// Package binding has what a Binding writes on a pod: node and cards in one step.
//
// It says the same as the extender's bind/binding.py.
package binding

import (
	"time"

	"gpushare.io/scheduler/internal/allocation"
	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/ledger"
	"gpushare.io/scheduler/internal/sharenode"
)

// AllocationOf returns the durable form of what holder has reserved on the node of share: what each container of
// request has of its cards.
func AllocationOf(
	holder *ledger.Holder, request cards.Request, share *sharenode.Node, now time.Time,
) *allocation.Allocation {
	first := classOf(holder, holder.Cards[0].Card, share)
	given := &allocation.Allocation{
		Node:       holder.Node,
		UID:        holder.UID,
		At:         now.UTC().Format("2006-01-02T15:04:05Z"),
		Unit:       share.UnitOf(first).Text,
		Class:      first,
		Containers: containersOf(holder, request, share),
		Cards:      holder.Cards,
		CPU:        request.CPU,
		Memory:     request.Memory,
	}
	for _, own := range holder.Cards {
		if text := share.UnitOf(classOf(holder, own.Card, share)).Text; text != given.Unit {
			given.OtherUnits = append(given.OtherUnits, allocation.CardUnit{Card: own.Card, Unit: text})
		}
	}
	return given
}

func classOf(holder *ledger.Holder, card string, share *sharenode.Node) cards.Class {
	if class := holder.MeaningOf(card).Class; class != 0 {
		return class
	}
	return share.Resources[0].Class
}

func containersOf(holder *ledger.Holder, request cards.Request, share *sharenode.Node) []cards.ContainerShares {
	var containers []cards.ContainerShares
	for _, part := range request.Parts {
		var own []string
		for _, held := range holder.Cards {
			if classOf(holder, held.Card, share) == part.Class {
				own = append(own, held.Card)
			}
		}
		containers = append(containers, cards.ModeOf(part.Class).Containers(part, request.Lending, own)...)
	}
	return containers
}

// Binding is what a pod gets with its node.
type Binding struct {
	// Annotations are ours, and those of the node's dialect, which are for people's tools: only ours counts.
	Annotations map[string]string
	// Room is the bytes that they take, with those that the plugin writes beside them later.
	Room int
}

// Of returns the Binding that carries an allocation to its pod on the node of share.
func Of(given *allocation.Allocation, share *sharenode.Node, now time.Time) Binding {
	at := now.UnixMicro() * 1000
	places := share.Places(given.Class)
	binding := Binding{Annotations: map[string]string{}}
	for key, text := range share.Dialect.BindAnnotations(given, places, at) {
		binding.Annotations[key] = text
	}
	binding.Annotations[allocation.Annotation] = given.Write()
	written := share.Dialect.AssignmentAnnotations(given.Class, at)
	binding.Room = allocation.SizeOf(binding.Annotations)
	for key, text := range written {
		binding.Room += len(key) + len(text)
		if before, has := binding.Annotations[key]; has {
			binding.Room -= len(key) + len(before)
		}
	}
	return binding
}
