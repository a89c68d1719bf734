package allocation

import (
	"fmt"

	"gpushare.io/scheduler/internal/cards"
)

// Kubernetes allows so many bytes of annotations on a pod, keys and values together. It does not check a Binding
// against that, but every later write to the pod: the status of a pod that was bound with more can never change
// again. So whoever writes to a pod looks first. Source: TotalAnnotationSizeLimitB of apimachinery.
const (
	maxBytes  = 256 * 1024
	roomBytes = 64 * 1024 // of these, kept free for our annotations
	maxCards  = 64        // of one node: an inventory lists no more
)

// The most bytes that parts of our annotations take.
const (
	containerBytes = 63 + len(`"":{},`)      // a container's name is a DNS label
	shareBytes     = 63 + len(`"":1000000,`) // a card, with the longest name that it may have, and units of it
	unitBytes      = 63 + len(`"":"",`) + 20 // a card of another unit than the first one, and that unit
	fixedBytes     = 2048                    // everything else, a dialect's annotations among it
)

// SizeOf returns the bytes of annotations as Kubernetes counts them.
func SizeOf(annotations map[string]string) int {
	size := 0
	for key, text := range annotations {
		size += len(key) + len(text)
	}
	return size
}

// SizeBesideOurs returns the bytes of all but our own annotation, which a Binding replaces, even on a copied pod.
func SizeBesideOurs(annotations map[string]string) int {
	size := SizeOf(annotations)
	if own, ok := annotations[Annotation]; ok {
		size -= len(Annotation) + len(own)
	}
	return size
}

// WorstSize returns the most bytes that the annotations of a Binding take on any node, and those that the plugin
// adds once the pod has its units.
func WorstSize(request cards.Request) int {
	containers, held, shares := 0, 0, 0
	for _, part := range request.Parts {
		containers += len(part.Containers)
		held += mostCards(part, part.Total)
		for _, amount := range part.Containers {
			shares += mostCards(part, amount.Units)
		}
	}
	size := fixedBytes + containers*containerBytes + (shares+held)*shareBytes
	if len(request.Parts) > 1 {
		size += held * unitBytes
	}
	return size
}

// mostCards returns on how many cards units may lie.
func mostCards(part cards.Part, units int64) int {
	if part.Class == cards.Memory {
		return 1
	}
	return int(min(units, maxCards))
}

// LackOfRoom returns why needed bytes do not fit a pod with annotations of present bytes; empty if they fit.
func LackOfRoom(present, needed int) string {
	if present+needed <= maxBytes {
		return ""
	}
	fewer := ""
	if needed > roomBytes {
		fewer = ", or ask for cards in fewer containers"
	}
	return fmt.Sprintf("the pod has %d bytes of annotations, and gpushare writes up to %d more, of %d that Kubernetes"+
		" allows: remove annotations from the pod, or shorten them%s", present, needed, maxBytes, fewer)
}
