"""A client without the contract, which uses reflection, as grpcurl does."""

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from grpc_reflection.v1alpha import reflection_pb2


class Explorer:
    """Services, descriptors and calls of a server, by one version of the reflection protocol."""

    def __init__(self, channel, version):
        self._channel = channel
        # The versions differ in their name only, so one set of messages serves both.
        self._query = channel.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )
        self._pool = descriptor_pool.DescriptorPool()
        self._files = {}

    def query(self, **question):
        """The answer to one question."""
        (answer,) = self._query(iter([reflection_pb2.ServerReflectionRequest(**question)]))
        return answer

    def services(self):
        """The full names of all services."""
        return [
            service.name for service in self.query(list_services="").list_services_response.service
        ]

    def file(self, **question):
        """The descriptor of a file, found by name or by symbol; loads what it imports."""
        answer = self.query(**question)
        assert not answer.HasField("error_response"), answer.error_response.error_message
        expected = None
        for encoded in answer.file_descriptor_response.file_descriptor_proto:
            file = descriptor_pb2.FileDescriptorProto.FromString(encoded)
            expected = expected or file
            self._load(file)
        return expected

    def _load(self, file):
        if file.name in self._files:
            return
        self._files[file.name] = file
        for dependency in file.dependency:
            if dependency not in self._files:
                self.file(file_by_filename=dependency)
        self._pool.Add(file)

    def service(self, name):
        """The descriptor of a service."""
        self.file(file_containing_symbol=name)
        return self._pool.FindServiceByName(name)

    def call(self, service, method, request, **more):
        """Calls a method with a request as JSON would give it; the answer in the same form.

        A client stream takes a list of requests, a server stream gives a list of answers.
        """
        found = self.service(service).methods_by_name[method]
        request_class = message_factory.GetMessageClass(found.input_type)
        response_class = message_factory.GetMessageClass(found.output_type)

        def message(content):
            return json_format.ParseDict(content, request_class(), descriptor_pool=self._pool)

        shape = "_".join(
            "stream" if streams else "unary"
            for streams in (found.client_streaming, found.server_streaming)
        )
        invoke = getattr(self._channel, shape)(
            f"/{service}/{method}",
            request_serializer=request_class.SerializeToString,
            response_deserializer=response_class.FromString,
        )
        sent = (
            iter([message(one) for one in request]) if found.client_streaming else message(request)
        )
        answer = invoke(sent, **more)

        def plain(received):
            return json_format.MessageToDict(
                received, preserving_proto_field_name=True, descriptor_pool=self._pool
            )

        return [plain(one) for one in answer] if found.server_streaming else plain(answer)


def code_of(error):
    """The name of the code of a failed call."""
    return grpc.StatusCode(error.code()).name
