package dialects

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gpushare.io/scheduler/internal/allocation"
	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/jsontext"
)

// Place is how people and other systems name a card, and its size in units.
type Place struct {
	Index, Units int64
}

// BindAnnotations returns the annotations that the Binding of a pod gets beside ours, for tools of the replaced
// system. places has at least the cards of the allocation, by UUID; at is in nanoseconds since 1970.
func (d *Dialect) BindAnnotations(given *allocation.Allocation, places map[string]Place, at int64) map[string]string {
	return d.words.bind(given, places, strconv.FormatInt(at, 10))
}

// AssignmentAnnotations returns those that the plugin adds once the pod has its units; at is as above.
func (d *Dialect) AssignmentAnnotations(class cards.Class, at int64) map[string]string {
	return d.words.assign(class, strconv.FormatInt(at, 10))
}

// words is how a system writes on pods.
type words interface {
	bind(given *allocation.Allocation, places map[string]Place, at string) map[string]string
	assign(class cards.Class, at string) map[string]string
	// read returns nil where the annotations do not say which cards a pod has. It refuses annotations that the
	// system would not have written.
	read(annotations map[string]string) (*Claim, error)
}

// noWords are those of a system that writes nothing.
type noWords struct{}

func (noWords) bind(*allocation.Allocation, map[string]Place, string) map[string]string { return nil }
func (noWords) assign(cards.Class, string) map[string]string                            { return nil }
func (noWords) read(map[string]string) (*Claim, error)                                  { return nil, nil }

// indexWords are those of a system that shares memory of one card, and says on the pod the card's index and the
// units: the keys of its annotations.
type indexWords struct {
	index, podUnits, cardUnits, assigned, assignedAt string
	// containers is the key of JSON that stands for index and podUnits where index is missing: container -> card
	// index -> units. Empty where the system has none.
	containers string
}

var (
	aliyun = indexWords{
		index:      "ALIYUN_COM_GPU_MEM_IDX",
		podUnits:   "ALIYUN_COM_GPU_MEM_POD",
		cardUnits:  "ALIYUN_COM_GPU_MEM_DEV",
		assigned:   "ALIYUN_COM_GPU_MEM_ASSIGNED",
		assignedAt: "ALIYUN_COM_GPU_MEM_ASSUME_TIME",
		containers: "scheduler.framework.gpushare.allocation",
	}
	enflame = indexWords{
		index:      "enflame.com/gcu-device-id",
		podUnits:   "enflame.com/gcu-device-memory-request",
		cardUnits:  "enflame.com/gcu-device-memory",
		assigned:   "enflame.com/gcu-device-assigned",
		assignedAt: "enflame.com/gcu-device-assign-time",
	}
)

// bind has no words for anything but memory of one card.
func (w indexWords) bind(given *allocation.Allocation, places map[string]Place, at string) map[string]string {
	held := sharesOfClass(given)
	if given.Class != cards.Memory || len(held) != 1 {
		return nil
	}
	place := places[held[0].Card]
	return map[string]string{
		w.index:      strconv.FormatInt(place.Index, 10),
		w.podUnits:   strconv.FormatInt(held[0].Units, 10),
		w.cardUnits:  strconv.FormatInt(place.Units, 10),
		w.assigned:   "false",
		w.assignedAt: at,
	}
}

func (w indexWords) assign(class cards.Class, at string) map[string]string {
	if class != cards.Memory {
		return nil
	}
	return map[string]string{w.assigned: "true", w.assignedAt: at}
}

func (w indexWords) read(annotations map[string]string) (*Claim, error) {
	if _, has := annotations[w.index]; has {
		return w.readIndex(annotations)
	}
	if text, has := annotations[w.containers]; has && w.containers != "" {
		return readContainers(text)
	}
	return nil, nil
}

func (w indexWords) readIndex(annotations map[string]string) (*Claim, error) {
	index, err := numberIn(annotations, w.index)
	if err != nil {
		return nil, err
	}
	units, err := numberIn(annotations, w.podUnits)
	if err != nil {
		return nil, err
	}
	claim := &Claim{}
	claim.put(index, min(units, jsontext.MaxNumber))
	return claim, nil
}

var errShare = errors.New("scheduler.framework.gpushare.allocation has an index or an amount that is none")

// readContainers reads container -> card index -> units.
func readContainers(text string) (*Claim, error) {
	reader := jsontext.NewReader([]byte(text))
	containers, err := jsontext.Entries(reader, func(reader *jsontext.Reader) ([]jsontext.Entry[int64], error) {
		return jsontext.Entries(reader, (*jsontext.Reader).Int)
	})
	if err == nil {
		err = reader.End()
	}
	if err != nil {
		return nil, err
	}
	sum := &Claim{}
	for _, container := range containers {
		if err := sum.addShares(container.Value); err != nil {
			return nil, err
		}
	}
	return sum, nil
}

// addShares adds what a container has: index of a card -> units.
func (c *Claim) addShares(shares []jsontext.Entry[int64]) error {
	var own Claim
	for _, share := range shares {
		index, ok := readNumber(share.Key)
		if !ok || share.Value < 0 {
			return errShare
		}
		own.put(index, share.Value) // 1 and 01 are the same card
	}
	for _, card := range own.cards {
		c.add(card.index, card.units)
	}
	return nil
}

// sharesOfClass returns what a pod has of the class of its allocation; it may have other classes, too.
func sharesOfClass(given *allocation.Allocation) []cards.Share {
	var own []cards.Share
	for _, share := range given.Held() {
		if given.UnitOf(share.Card) == given.Unit {
			own = append(own, share)
		}
	}
	return own
}

// volcano has gpu-memory and gpu-number: annotations have the cards' indexes, the pod's request the amount.
type volcano struct{}

const (
	volcanoIndex     = "volcano.sh/gpu-index" // 0, or 0,1 for several whole cards
	volcanoPredicate = "volcano.sh/predicate-time"
	volcanoAssigned  = "volcano.sh/gpu-assigned"
)

func (volcano) bind(given *allocation.Allocation, places map[string]Place, at string) map[string]string {
	if given.Class == cards.Slice {
		return nil
	}
	var indexes []int64
	for _, share := range sharesOfClass(given) {
		indexes = append(indexes, places[share.Card].Index)
	}
	slices.Sort(indexes)
	texts := make([]string, len(indexes))
	for place, index := range indexes {
		texts[place] = strconv.FormatInt(index, 10)
	}
	return map[string]string{volcanoIndex: strings.Join(texts, ","), volcanoPredicate: at}
}

func (volcano) assign(class cards.Class, _ string) map[string]string {
	if class == cards.Slice {
		return nil
	}
	return map[string]string{volcanoAssigned: "true"}
}

func (volcano) read(annotations map[string]string) (*Claim, error) {
	text, has := annotations[volcanoIndex]
	if !has {
		return nil, nil
	}
	claim := &Claim{}
	for part := range strings.SplitSeq(text, ",") {
		index, ok := readNumber(part)
		if !ok {
			return nil, fmt.Errorf("%s is %.200q, not one index or several", volcanoIndex, text)
		}
		claim.put(index, -1)
	}
	return claim, nil
}
