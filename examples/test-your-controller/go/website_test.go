// A test in Go: go test. It needs actorlet and kubectl in PATH, or in ACTORLET and KUBECTL.
package website

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func program(variable, name string) string {
	if path := os.Getenv(variable); path != "" {
		return path
	}
	return name
}

// startFleet gives the path of a kubeconfig when all nodes are Ready. The fleet ends with the test.
func startFleet(t *testing.T, file string) string {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// The first of ExtraFiles is descriptor 3.
	cmd := exec.Command(program("ACTORLET", "actorlet"), "fleet", file, "--api", "local", "--json", "--ready-fd", "3", "--socket", "")
	cmd.ExtraFiles = []*os.File{write}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the fleet: %v", err)
		}
	})
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatal("the fleet did not become ready: its standard error says why")
	}
	var ready struct{ Kubeconfig string }
	if err := json.Unmarshal([]byte(line), &ready); err != nil {
		t.Fatal(err)
	}
	return ready.Kubeconfig
}

func TestWebsiteIsRefusedWithoutReplicas(t *testing.T) {
	kubeconfig := startFleet(t, "../fleet.yaml")
	cmd := exec.Command(program("KUBECTL", "kubectl"), "--kubeconfig", kubeconfig, "create", "-f", "-")
	cmd.Stdin = strings.NewReader(`{"apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": "x"}, "spec": {}}`)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "spec.replicas: Required value") {
		t.Fatalf("it was not refused: %s", out)
	}
}
