# The gateway as an image: the same program as `gateway serve`.
#
#   docker build -t llm-gateway .
#   docker run -p 8080:8080 -e OPENAI_API_KEY -e GATEWAY_KEY \
#     -v ./gateway.toml:/etc/gateway/gateway.toml:ro -v gateway-data:/var/lib/gateway llm-gateway
#
# In gateway.toml: [server] host = "0.0.0.0", [store] url = "sqlite:////var/lib/gateway/gateway.db".
# A scraper of /metrics is not on loopback here: give it [observe] metrics_token.

FROM python:3.13-slim AS build
WORKDIR /src
RUN python -m venv /opt/gateway
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY requirements-build.txt requirements.txt ./
RUN /opt/gateway/bin/pip install --require-hashes -r requirements-build.txt -r requirements.txt
COPY pyproject.toml README.md ./
COPY config config
COPY adapters adapters
COPY gateway gateway
RUN /opt/gateway/bin/pip install --no-deps --no-build-isolation . \
    && /opt/gateway/bin/pip uninstall --yes setuptools pip

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/gateway --create-home gateway
COPY --from=build /opt/gateway /opt/gateway
ENV PATH=/opt/gateway/bin:$PATH PYTHONUNBUFFERED=1 GATEWAY_CONFIG=/etc/gateway/gateway.toml
WORKDIR /var/lib/gateway
VOLUME /var/lib/gateway
USER 10001
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["python", "-c", \
    "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/readyz', timeout=2)"]
ENTRYPOINT ["gateway"]
CMD ["serve"]
