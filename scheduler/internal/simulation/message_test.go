package simulation

import (
	"encoding/json"
	"fmt"
	"testing"

	"gpushare.io/scheduler/internal/inspection"
)

const share = `{"metadata":{"name":"gpu-1"},"spec":{"mode":"Memory","memoryUnit":"1Gi"},"status":{"memoryUnit":"1Gi",` +
	`"conditions":[{"type":"Registered","status":"True"}],"cards":[{"uuid":"GPU-0","index":0,"units":16,"health":"Healthy"}]}}`

// take has a message happen that is written as JSON, and returns the answer.
func take(t *testing.T, engines Engines, at int, text string) any {
	t.Helper()
	var message Message
	if err := json.Unmarshal(fmt.Appendf(nil, `{"engine":"e","at":%d,%s}`, at, text), &message); err != nil {
		t.Fatal(err)
	}
	answer, err := engines.Take(message)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func pod(name, more string) string {
	return fmt.Sprintf(`"pod":{"metadata":{"namespace":"d","name":%q,"uid":"u-%s","resourceVersion":"1"%s},"spec":{"containers":`+
		`[{"name":"main","resources":{"limits":{"gpushare.io/memory":"10"}}}]`, name, name, more)
}

func place(t *testing.T, engines Engines, name string) string {
	t.Helper()
	return take(t, engines, 0, `"do":"place",`+pod(name, "")+`}}`).(Placement).Node
}

func allocated(t *testing.T, engines Engines) (int64, int64) {
	t.Helper()
	nodes := take(t, engines, 0, `"do":"inspect"`).(map[string]any)["nodes"].([]inspection.Node)
	return nodes[0].Cards[0].Allocated, nodes[0].Cards[0].Reserved
}

func TestAPlacedPodIsCountedUntilItIsReleased(t *testing.T) {
	engines := Engines{}
	take(t, engines, 0, `"do":"start"`)
	take(t, engines, 0, `"do":"share","shareNode":`+share)
	if node := place(t, engines, "a"); node != "gpu-1" {
		t.Fatalf("a goes to %q", node)
	}
	if units, reserved := allocated(t, engines); units != 10 || reserved != 10 {
		t.Errorf("allocated %d, reserved %d", units, reserved)
	}
	if node := place(t, engines, "b"); node != "" {
		t.Errorf("b goes to %q, where a is being bound", node)
	}
	take(t, engines, 0, `"do":"release","uid":"u-a"`)
	if node := place(t, engines, "b"); node != "gpu-1" {
		t.Errorf("after a was released b goes to %q", node)
	}
}

func TestAPodThatIsGoneCountsForAWhile(t *testing.T) {
	engines := Engines{}
	take(t, engines, 0, `"do":"share","shareNode":`+share)
	bound := pod("a", `,"annotations":{"gpushare.io/allocation":"{\"node\":\"gpu-1\",\"uid\":\"u-a\",\"at\":\"2026-11-21T10:00:00Z\",`+
		`\"unit\":\"1Gi\",\"containers\":{\"main\":{\"GPU-0\":10}}}"}`) + `,"nodeName":"gpu-1"}}`
	take(t, engines, 0, `"do":"pod",`+bound)
	take(t, engines, 0, `"do":"see",`+bound)
	take(t, engines, 1000, `"do":"gone","uid":"u-a"`)
	take(t, engines, 1000, `"do":"unsee","uid":"u-a"`)
	take(t, engines, 4000, `"do":"expire"`)
	if node := place(t, engines, "b"); node != "" {
		t.Errorf("b goes to %q, and the kubelet may have a's units", node)
	}
	take(t, engines, 6000, `"do":"expire"`)
	if node := place(t, engines, "b"); node != "gpu-1" {
		t.Errorf("b goes to %q", node)
	}
}

func TestAnAdoptedPodCountsUntilTheServerHasItNoMore(t *testing.T) {
	engines := Engines{}
	take(t, engines, 0, `"do":"share","shareNode":`+share)
	take(t, engines, 0, `"do":"adopt",`+pod("a", `,"annotations":{"gpushare.io/allocation":"{\"node\":\"gpu-1\",\"uid\":\"u-a\",`+
		`\"at\":\"2026-11-21T10:00:00Z\",\"unit\":\"1Gi\",\"containers\":{\"main\":{\"GPU-0\":10}}}"}`)+`}}`)
	unseen := take(t, engines, 60_000, `"do":"unseen"`).(map[string]any)["uids"]
	if fmt.Sprint(unseen) != "[u-a]" {
		t.Fatalf("unseen: %v", unseen)
	}
	for _, test := range []struct{ present, want string }{{`{"u-a":true}`, ""}, {`{}`, "gpu-1"}} {
		take(t, engines, 60_000, `"do":"confirm","unseen":["u-a"],"present":`+test.present)
		take(t, engines, 70_000, `"do":"expire"`)
		if node := place(t, engines, "b"); node != test.want {
			t.Errorf("present %s: b goes to %q", test.present, node)
		}
	}
}

func TestWhatIsNoMessageIsAnError(t *testing.T) {
	if _, err := (Engines{}).Take(Message{Do: "nothing"}); err == nil {
		t.Error("no error")
	}
}
