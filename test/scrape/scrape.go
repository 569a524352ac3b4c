// Package scrape reads the metrics of a program as a client of its endpoint.
package scrape

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
)

// Do sends a request for metrics with a bearer token, unless it is empty. It accepts any certificate.
func Do(ctx context.Context, method, url, token string) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("reading metrics: %w", err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}
