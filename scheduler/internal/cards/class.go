// Package cards decides which cards a pod gets, and why: what it asks for, whether that fits, which cards are
// chosen, how good a node is for it, and the words of a refusal.
//
// It is pure, and says the same as core's placement: tests/engine compares the two. Amounts are units, and
// signed: an over-full card has negative free units and fits nothing.
package cards

// Class is what of a card a pod asks for. The zero value is no class.
type Class uint8

// The classes, in the order in which they lie on a card.
const (
	Memory Class = iota + 1
	Slice
	Whole
)

// Classes are all classes in their order.
var Classes = [...]Class{Memory, Slice, Whole}

var classNames = [...]string{"", "memory", "slice", "card"}

// String returns the class as annotations write it.
func (c Class) String() string { return classNames[c] }

// ClassNamed returns the class that annotations write as name; false where there is none.
func ClassNamed(name string) (Class, bool) {
	for _, class := range Classes {
		if class.String() == name {
			return class, true
		}
	}
	return 0, false
}
