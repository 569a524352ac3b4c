// Package content reads and verifies the OperatorContents of OperatorVersions on a cluster, and remembers what it has verified.
package content

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
)

// File reads a file of an OperatorVersion. It returns a *content.Error if the content is incomplete or altered.
func File(ctx context.Context, c client.Reader, version *kudo.OperatorVersion, file kudo.ContentFile) ([]byte, error) {
	parts := make([][]byte, len(file.Parts))
	for i := range file.Parts {
		var err error
		if parts[i], err = Part(ctx, c, client.ObjectKeyFromObject(version), file, i); err != nil {
			return nil, err
		}
	}
	return content.Join(version.Namespace, file, parts)
}

// Part reads and verifies a part of a file of the OperatorVersion of that name. It returns a *content.Error if it is missing or altered.
func Part(ctx context.Context, c client.Reader, version types.NamespacedName, file kudo.ContentFile, part int) ([]byte, error) {
	stored, name := &kudo.OperatorContent{}, content.Name(version.Name, file.Parts[part])
	err := c.Get(ctx, types.NamespacedName{Namespace: version.Namespace, Name: name}, stored)
	if apierrors.IsNotFound(err) {
		return nil, &content.Error{Namespace: version.Namespace, File: file, Part: part}
	}
	if err != nil {
		return nil, fmt.Errorf("reading OperatorContent %q: %w", name, err)
	}
	data, err := content.Unpack(stored)
	if err != nil {
		return nil, &content.Error{Namespace: version.Namespace, File: file, Part: part, Cause: err}
	}
	if found := content.DigestOf(data); found != file.Parts[part] {
		return nil, &content.Error{Namespace: version.Namespace, File: file, Part: part, Found: found}
	}
	return data, nil
}

// Fill returns an OperatorVersion with the templates that its content stores.
func Fill(ctx context.Context, c client.Reader, version *kudo.OperatorVersion) (*kudo.OperatorVersion, error) {
	spec, err := content.Fill(&version.Spec, func(file kudo.ContentFile) (string, error) {
		text, err := File(ctx, c, version, file)
		return string(text), err
	})
	if err != nil || spec == &version.Spec {
		return version, err
	}
	filled := *version
	filled.Spec = *spec
	return &filled, nil
}
