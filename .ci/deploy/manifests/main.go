// Command manifests reads deployment files as strictly as those who run them: a
// member that Kubernetes or Compose does not know, or of another type, is an error.
//
//	manifests FILE...     *.yaml of Kubernetes, or compose.yaml
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// kinds are the objects that we ship.
var kinds = map[string]func() any{
	"v1/ConfigMap":                       func() any { return &corev1.ConfigMap{} },
	"v1/Service":                         func() any { return &corev1.Service{} },
	"v1/PersistentVolumeClaim":           func() any { return &corev1.PersistentVolumeClaim{} },
	"apps/v1/Deployment":                 func() any { return &appsv1.Deployment{} },
	"batch/v1/Job":                       func() any { return &batchv1.Job{} },
	"policy/v1/PodDisruptionBudget":      func() any { return &policyv1.PodDisruptionBudget{} },
	"networking.k8s.io/v1/NetworkPolicy": func() any { return &networkingv1.NetworkPolicy{} },
}

func main() {
	for _, path := range os.Args[1:] {
		check := kubernetes
		if strings.HasPrefix(filepath.Base(path), "compose") {
			check = compose
		}
		said, err := check(path)
		if err != nil {
			fmt.Fprintf(os.Stderr, "manifests: %s: %v\n", path, err)
			os.Exit(1)
		}
		fmt.Printf("%s: %s\n", filepath.Base(path), said)
	}
}

func kubernetes(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var found []string
	for _, part := range bytes.Split(text, []byte("\n---\n")) {
		var is struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		}
		if err := yaml.Unmarshal(part, &is); err != nil {
			return "", err
		}
		make, known := kinds[is.APIVersion+"/"+is.Kind]
		if !known {
			return "", fmt.Errorf("no object of kind %s/%s is known here", is.APIVersion, is.Kind)
		}
		if err := yaml.UnmarshalStrict(part, make()); err != nil {
			return "", fmt.Errorf("%s: %w", is.Kind, err)
		}
		found = append(found, is.Kind)
	}
	return strings.Join(found, ", "), nil
}

func compose(path string) (string, error) {
	options, err := cli.NewProjectOptions([]string{path}, cli.WithOsEnv, cli.WithWorkingDirectory(filepath.Dir(path)))
	if err != nil {
		return "", err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return "", err
	}
	return strings.Join(project.ServiceNames(), ", "), nil
}
