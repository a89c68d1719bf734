package cards

import (
	"fmt"
	"strings"
)

// Room is what the cards of a node offer to one request.
type Room struct {
	// Greatest is the greatest amount that fits now.
	Greatest int64
	// Possible is the greatest amount that would fit if nothing was allocated.
	Possible int64
	// Closed are the cards that offer nothing because they are sick or cordoned.
	Closed int
}

// remark is for people, at the end of a refusal; empty where every card counts.
func (r Room) remark() string {
	switch {
	case r.Closed > 1:
		return fmt.Sprintf("; %d unhealthy or cordoned cards do not count", r.Closed)
	case r.Closed == 1:
		return "; 1 unhealthy or cordoned card does not count"
	}
	return ""
}

// Mode is one way of sharing cards: all that differs between the classes. Amounts are of its class, units are
// those of cards.
type Mode interface {
	// Choose returns what amount gets of cards; nothing when it does not fit.
	Choose(cards []Card, amount int64, strategy Strategy) []Share
	// Reason returns why Choose has chosen these of cards, for people.
	Reason(cards []Card, chosen []Share, strategy Strategy) string
	// Greatest returns the greatest amount that fits cards with so many units free, each; 0 when none does.
	Greatest(units []int64) int64
	// Explain returns for people why amount does not fit where there is room.
	Explain(amount int64, room Room) string
	// Containers returns what each container gets of the cards on which the units of a pod lie.
	Containers(part Part, lending []string, cards []string) []ContainerShares
}

// ContainerShares is what one container has.
type ContainerShares struct {
	Container string
	Shares    []Share
}

// ModeOf returns the way in which cards are shared for a class.
func ModeOf(class Class) Mode {
	switch class {
	case Slice:
		return slicesMode
	case Whole:
		return wholeMode
	}
	return memoryMode{}
}

// NodeMode is a mode of a whole node: the classes that its cards are open to, each card one at a time.
type NodeMode struct {
	Name    string
	Classes []Class
}

// NodeModes are all of them, in the order in which sentences for people name them.
var NodeModes = [...]NodeMode{
	{"Memory", []Class{Memory}},
	{"Slices", []Class{Slice}},
	{"Exclusive", []Class{Whole}},
	{"Mixed", []Class{Memory, Slice, Whole}},
}

// ClassOfLock returns the class of a card with this lock, as a status writes it; none for a card without one.
func ClassOfLock(lock string) Class {
	for _, mode := range NodeModes[:len(Classes)] {
		if mode.Name == lock {
			return mode.Classes[0]
		}
	}
	return 0
}

// OtherResourceReason returns for people why a node that serves other resources does not fit.
func OtherResourceReason(asked string, served []string) string {
	return fmt.Sprintf("node(s) that serve %s, and the pod asks for %s", strings.Join(served, " and "), asked)
}

// SeveralResourcesReason returns for people why a node that serves one resource does not fit.
func (r Request) SeveralResourcesReason() string {
	names := make([]string, len(r.Parts))
	for place, part := range r.Parts {
		names[place] = part.Name
	}
	return fmt.Sprintf("the pod asks for %s together: only mode Mixed allows that", strings.Join(names, " and "))
}
