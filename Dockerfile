# docker build -t parallax . && docker run --rm -it -v parallax:/data parallax
FROM rust:1.95-slim-trixie AS build
WORKDIR /source
COPY . .
RUN cargo install --path . --locked --profile dist --all-features --root /out

FROM debian:trixie-slim
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* && useradd --uid 1000 --create-home parallax \
    && mkdir /data && chown parallax /data
COPY --from=build /out/bin/parallax /usr/local/bin/parallax
USER parallax
ENV PARALLAX_DATA_DIR=/data
VOLUME /data
ENTRYPOINT ["parallax"]
