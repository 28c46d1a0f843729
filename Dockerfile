FROM python:3.11-slim

WORKDIR /opt/aclbroker
COPY requirements/runtime.lock requirements/runtime.lock
RUN pip install --no-cache-dir --require-hashes --no-deps -r requirements/runtime.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir --no-deps --no-build-isolation . \
    && useradd --system --create-home --home-dir /var/lib/aclbroker aclbroker

USER aclbroker
WORKDIR /var/lib/aclbroker
VOLUME /var/lib/aclbroker
EXPOSE 9092
STOPSIGNAL SIGTERM
ENTRYPOINT ["aclbroker"]
# Clients are let in when the log, as JSON, has a line with "event":"ready".
# A configuration is required: without one the broker listens on the container's loopback only.
CMD ["serve", "/etc/aclbroker/server.properties"]
