# The service in a container: static binaries, a user without rights, nothing to write.
# It needs DATABASE_URL; there is no PostgreSQL inside. /fanout is the program that
# publishes every event to a broker: docker run --entrypoint /fanout …
#
#   docker build -t countersign .
#   docker run --read-only -e DATABASE_URL=… -e BASE_URL=https://… -p 8080:8080 countersign
#
# BASE may name another base that has CA certificates and no shell.
ARG BASE=gcr.io/distroless/static-debian12:nonroot

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH
WORKDIR /src
# Modules have a layer of their own, so that a change of ours does not fetch them again.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN go run ./api/clients/verifier/make
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags='-s -w -buildid=' -o / ./cmd/countersign ./cmd/fanout

FROM ${BASE}
COPY --from=build /countersign /fanout /
USER 65532:65532
# All addresses: a container's loopback is nobody's. Metrics have a port of their own
# that only the inside of the network should reach.
ENV LISTEN=0.0.0.0:8080 METRICS_LISTEN=0.0.0.0:9464
EXPOSE 8080 9464
HEALTHCHECK --interval=10s --timeout=6s --start-period=10s \
    CMD ["/countersign", "doctor", "--health", "http://127.0.0.1:8080"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/countersign"]
CMD ["serve"]
