// Package cases answers the questions of the table of cases, tests/engine/cases.jsonl, and of the differential fuzz
// beside it. Core answers the same questions: the two have to say the same. Nothing else uses it.
package cases

import (
	"encoding/json"
	"errors"
	"fmt"

	"gpushare.io/scheduler/internal/allocation"
	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/dialects"
	"gpushare.io/scheduler/internal/jsontext"
	"gpushare.io/scheduler/internal/ledger"
	"gpushare.io/scheduler/internal/quantity"
	"gpushare.io/scheduler/internal/unit"
)

// Case is a question, and in the table the answer to it.
type Case struct {
	Name   string          `json:"name"`
	Kind   string          `json:"kind"`
	Given  json.RawMessage `json:"given"`
	Answer json.RawMessage `json:"answer"`
}

// object is an answer, or a part of one.
type object = map[string]any

// Solve returns the answer of this engine, as it is to be written.
func (c Case) Solve() ([]byte, error) {
	answer, known := map[string]func(json.RawMessage) (any, error){
		"quantity":   decoded(answerQuantity),
		"unit":       decoded(answerUnit),
		"request":    decoded(answerRequest),
		"annotation": decoded(answerAnnotation),
		"claim":      decoded(answerClaim),
		"cluster":    decoded(answerCluster),
		"history":    decoded(answerHistory),
	}[c.Kind]
	if !known {
		return nil, fmt.Errorf("no kind of case: %q", c.Kind)
	}
	found, err := answer(c.Given)
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", c.Name, err)
	}
	return json.Marshal(found)
}

// decoded returns answer as a function of the question's JSON.
func decoded[T any](answer func(T) any) func(json.RawMessage) (any, error) {
	return func(raw json.RawMessage) (any, error) {
		var given T
		if err := json.Unmarshal(raw, &given); err != nil {
			return nil, err
		}
		return answer(given), nil
	}
}

// answerQuantity is asked for the sum of amounts, and what each is rounded up.
func answerQuantity(texts []string) any {
	ceils := make([]int64, len(texts))
	for place, text := range texts {
		ceils[place] = quantity.Read(text).Ceil()
	}
	return object{"sum": quantity.Sum(texts), "ceils": ceils}
}

// answerUnit is asked what the units of a node are.
func answerUnit(text string) any {
	units, err := unit.ParseNode(text)
	if err != nil {
		return nil
	}
	classes := make([]string, len(units))
	for place, one := range units {
		classes[place] = one.Class.String() + " " + one.Text
	}
	two := func(first, second string) any {
		converted, ok := unit.Convert(7, unit.MeaningOf(first), unit.MeaningOf(second), 1<<48)
		return [2]any{converted, ok}
	}
	conversions := []any{}
	for _, one := range units {
		conversions = append(conversions, two(one.Text, "3Gi"), two("3Gi", one.Text), two(one.Text, "1/3 card"))
	}
	return object{"mode": unit.ModeOf(units).Name, "units": classes, "conversions": conversions}
}

// askedPod is a pod that asks for something.
type askedPod struct {
	UID         string            `json:"uid"`
	Node        string            `json:"node"`
	Annotations map[string]string `json:"annotations"`
	Spec        podSpec           `json:"spec"`
}

type podSpec struct {
	InitContainers []container `json:"initContainers"`
	Containers     []container `json:"containers"`
}

type container struct {
	Name          string `json:"name"`
	RestartPolicy string `json:"restartPolicy"`
	Resources     struct {
		Limits   map[string]json.RawMessage `json:"limits"`
		Requests map[string]json.RawMessage `json:"requests"`
	} `json:"resources"`
}

func (s podSpec) pod() cards.Pod {
	return cards.Pod{InitContainers: containersOf(s.InitContainers), Containers: containersOf(s.Containers)}
}

func containersOf(written []container) []cards.Container {
	containers := make([]cards.Container, len(written))
	for place, one := range written {
		containers[place] = cards.Container{
			Name:     one.Name,
			Stays:    one.RestartPolicy == "Always",
			Limits:   amountsOf(one.Resources.Limits),
			Requests: amountsOf(one.Resources.Requests),
		}
	}
	return containers
}

// amountsOf takes a number for the text that it is written as.
func amountsOf(written map[string]json.RawMessage) map[string]string {
	amounts := make(map[string]string, len(written))
	for name, raw := range written {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		amounts[name] = text
	}
	return amounts
}

type requestQuestion struct {
	Pod podSpec `json:"pod"`
	// Served are the names that others' plugins offer as well and that some node has from us.
	Served []string `json:"served"`
	// Size is that of the pod's own annotations, in bytes.
	Size int `json:"size"`
}

// answerRequest is asked what a pod asks for.
func answerRequest(given requestQuestion) any {
	isServed := func(name string) bool {
		for _, served := range given.Served {
			if served == name {
				return true
			}
		}
		return false
	}
	request := cards.ReadRequest(given.Pod.pod(), dialects.Resources(isServed))
	parts := []any{}
	for _, part := range request.Parts {
		parts = append(parts, object{
			"name": part.Name, "class": part.Class.String(), "total": part.Total,
			"containers": amounts(part.Containers), "together": part.ByContainer(),
		})
	}
	worst := allocation.WorstSize(request)
	return object{
		"parts": parts, "lending": list(request.Lending), "cpu": request.CPU, "memory": request.Memory,
		"unservable": request.Unservable(), "worst": worst, "lack": allocation.LackOfRoom(given.Size, worst),
	}
}

func amounts(of []cards.Amount) []any {
	written := []any{}
	for _, amount := range of {
		written = append(written, [2]any{amount.Container, amount.Units})
	}
	return written
}

func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func shares(of []cards.Share) []any {
	written := []any{}
	for _, share := range of {
		written = append(written, [2]any{share.Card, share.Units})
	}
	return written
}

type annotationQuestion struct {
	Text string `json:"text"`
	UID  string `json:"uid"`
}

// answerAnnotation is asked what an annotation says of the pod with a UID, and how it is written anew.
func answerAnnotation(given annotationQuestion) any {
	found, err := allocation.Read(given.Text, given.UID)
	if err != nil {
		return object{"error": problem(err)}
	}
	containers, others := []any{}, []any{}
	for _, container := range found.Containers {
		containers = append(containers, [2]any{container.Container, shares(container.Shares)})
	}
	for _, other := range found.OtherUnits {
		others = append(others, [2]any{other.Card, other.Unit})
	}
	return object{
		"node": found.Node, "uid": found.UID, "at": found.At, "unit": found.Unit, "class": found.Class.String(),
		"containers": containers, "cards": shares(found.Cards), "cpu": found.CPU, "memory": found.Memory,
		"others": others, "held": shares(found.Held()), "written": found.Write(),
	}
}

// problem returns why an annotation is not believed, without the words of the parser.
func problem(err error) string {
	if _, isOther := errors.AsType[*jsontext.ShapeError](err); isOther || errors.Is(err, jsontext.ErrMalformed) {
		return "not an allocation"
	}
	return err.Error()
}

type claimQuestion struct {
	Annotations map[string]string `json:"annotations"`
	Total       int64             `json:"total"`
}

// answerClaim is asked what replaced systems wrote on a pod that asks for a total.
func answerClaim(given claimQuestion) any {
	claims, problems := dialects.Claims(given.Annotations)
	written := object{}
	for name, claim := range claims {
		held := []any{}
		for _, share := range claim.Shares(given.Total) {
			held = append(held, [2]int64{share.Index, share.Units})
		}
		written[name] = held
	}
	return object{"claims": written, "problems": len(problems)}
}

// podOf returns what the ledger makes of a bound pod.
func podOf(given askedPod) *ledger.Pod {
	everything := dialects.Resources(func(string) bool { return true })
	pod, _ := ledger.ReadPod(given.UID, given.Node, given.Annotations, func() cards.Request {
		return cards.ReadRequest(given.Spec.pod(), everything)
	})
	return pod
}
