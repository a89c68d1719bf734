package inspection

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/component-base/configz"
)

// shown returns what /configz shows by our name.
func shown(t *testing.T) map[string]any {
	t.Helper()
	mux := http.NewServeMux()
	configz.InstallHandler(mux)
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/configz", nil))
	var all map[string]map[string]any
	if err := json.Unmarshal(answer.Body.Bytes(), &all); err != nil {
		t.Fatalf("%d: %s", answer.Code, answer.Body)
	}
	return all[Name]
}

func TestConfigzShowsWhatIsCountedNow(t *testing.T) {
	published, err := configz.New(Name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { configz.Delete(Name) })
	var counted []Node
	published.Set(New(func() []Node { return counted }))
	if found := shown(t); found["kind"] != "Inspection" || found["nodes"] != nil {
		t.Errorf("before anything is known: %v", found)
	}
	counted = []Node{{Name: "gpu-1"}}
	if nodes, _ := shown(t)["nodes"].([]any); len(nodes) != 1 {
		t.Errorf("later: %v", shown(t))
	}
}
