# SPDX-License-Identifier: Apache-2.0

# The compiler runs on the machine that builds, whatever the image is for.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY api api
COPY cmd cmd
COPY controllers controllers
COPY gitops gitops
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=dev
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath \
    -ldflags "-s -w -X github.com/openmcp-project/cluster-provider-capi/cmd/cluster-provider-capi/app.Version=$VERSION" \
    -o /cluster-provider-capi ./cmd/cluster-provider-capi

FROM gcr.io/distroless/static:nonroot
COPY --from=build /cluster-provider-capi /cluster-provider-capi
USER 65532:65532
ENTRYPOINT ["/cluster-provider-capi"]
