package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tokenLife is the lifetime of service account tokens in seconds. It is longer than the lifetime of a sandbox, because tokens are not
// renewed.
const tokenLife = 365 * 24 * 60 * 60

// accountFolder is the path of the service account token in a container.
const accountFolder = "var/run/secrets/kubernetes.io/serviceaccount"

// imageContainers returns the containers of the Deployment's pod that have a program in the folder of images.
func (c clusterPlan) imageContainers(deployment *appsv1.Deployment) []container {
	var containers []container
	for _, spec := range deployment.Spec.Template.Spec.Containers {
		if c.imageProgram(spec) == "" {
			continue
		}
		root := c.folder().path(filepath.Join("pods", deployment.Namespace, deployment.Name, spec.Name))
		folders := map[string]string{}
		for _, mount := range spec.VolumeMounts {
			folders[mount.Name] = filepath.Join(root, mount.MountPath)
		}
		inPlace := strings.NewReplacer(variablesOf(spec, deployment.Namespace)...)
		p := program{
			Name: deployment.Name + "." + spec.Name, Path: spec.Command[0], Pod: client.ObjectKeyFromObject(deployment),
			Image: c.imageProgram(spec), Root: root, Env: c.podEnvironment(spec, deployment.Namespace),
		}
		for _, argument := range slices.Concat(spec.Command[1:], spec.Args) {
			p.Args = append(p.Args, inPlace.Replace(argument))
		}
		containers = append(containers, container{program: p, folders: folders})
	}
	return containers
}

// imageProgram returns the file of the container's program, by the last part of the image's name, or an empty string. A container without a
// command runs nothing, because the image's entrypoint is unknown.
func (c clusterPlan) imageProgram(spec corev1.Container) string {
	if c.Images == "" || len(spec.Command) == 0 {
		return ""
	}
	image, _, _ := strings.Cut(path.Base(spec.Image), "@")
	image, _, _ = strings.Cut(image, ":")
	folder, name := filepath.Join(c.Images, image), path.Base(spec.Command[0])
	if len(missingPrograms(folder, []string{name})) > 0 {
		return ""
	}
	return filepath.Join(folder, name)
}

// podEnvironment returns the environment of a container, including the variables by which client-go finds the API server.
func (c clusterPlan) podEnvironment(spec corev1.Container, namespace string) []string {
	environment := []string{
		"PATH=/", "HOME=/",
		"KUBERNETES_SERVICE_HOST=127.0.0.1", fmt.Sprintf("KUBERNETES_SERVICE_PORT=%d", c.port("kube-apiserver")),
	}
	for _, variable := range spec.Env {
		environment = append(environment, variable.Name+"="+valueOf(variable, namespace))
	}
	return environment
}

// furnishRoot adds the program and its service account token to a program's root folder, in addition to the pod's volumes.
func (r *podRunner) furnishRoot(ctx context.Context, p program, account client.ObjectKey) error {
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](tokenLife)}}
	subject := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}
	if err := r.client.SubResource("token").Create(ctx, subject, token); err != nil {
		return fmt.Errorf("requesting a token for service account %s: %w", account, err)
	}
	folder := filepath.Join(p.Root, accountFolder)
	for _, made := range []string{folder, filepath.Join(p.Root, "tmp"), filepath.Dir(filepath.Join(p.Root, p.Path))} {
		if err := os.MkdirAll(made, 0o700); err != nil {
			return fmt.Errorf("creating the root folder of %s: %w", p.Name, err)
		}
	}
	err := errors.Join(
		writePrivate(filepath.Join(folder, "token"), []byte(token.Status.Token)),
		writePrivate(filepath.Join(folder, "namespace"), []byte(account.Namespace)),
		writePrivate(filepath.Join(folder, "ca.crt"), r.cluster.authority.Certificate),
		replicate(p.Image, filepath.Join(p.Root, p.Path)),
	)
	if err != nil {
		return fmt.Errorf("populating the root folder of %s: %w", p.Name, err)
	}
	return nil
}

// replicate creates a second copy of a program, as a hard link if the file system supports it.
func replicate(program, place string) error {
	if err := os.RemoveAll(place); err != nil {
		return err
	}
	if os.Link(program, place) == nil {
		return nil
	}
	source, err := os.Open(program)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(place, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// checkImages returns the absolute path of a folder of images, or an empty string if none is given.
func checkImages(folder string) (string, error) {
	if folder == "" {
		return "", nil
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return "", fmt.Errorf("folder of images %q not found", folder)
	}
	return filepath.Abs(folder)
}
