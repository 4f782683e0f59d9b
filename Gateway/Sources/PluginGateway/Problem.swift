import HTTPTypes
import Hummingbird
import PluginABI

/// The reason why a request failed, as the client sees it (RFC 9457).
struct Problem: Error, Sendable {
    private(set) var status: HTTPResponse.Status
    let error: PluginError
    /// After how many seconds the client may try again.
    var retryAfter: Int?
    /// The methods that the path has.
    var allowed: String?
    var challenge: String?
    /// Whether the connection must be closed, because the rest of the request was not read.
    var closes = false
    /// Whether the problem arose after the body had been read.
    var isAfterBody = false

    /// The same problem, marked as ``isAfterBody``.
    var afterBody: Problem {
        var problem = self
        problem.isAfterBody = true
        return problem
    }

    init(_ code: PluginError.Code, _ message: String, retryAfter: Int? = nil, closes: Bool = false) {
        self.init(PluginError(code, message), retryAfter: retryAfter)
        self.closes = closes
    }

    init(_ error: PluginError, retryAfter: Int? = nil) {
        (status, self.error) = (Self.status(of: error), error)
        let isPassing = status == .serviceUnavailable || status == .tooManyRequests
        self.retryAfter = retryAfter ?? (isPassing ? 1 : nil)
    }

    /// The problem of a change of modules. That a module cannot serve is a conflict, not a fault of the gateway.
    init(ofChange error: PluginError) {
        self.init(error)
        if Self.hindrances.contains(error.code) { status = .conflict }
    }

    static func method(_ method: HTTPRequest.Method, allowed: String) -> Problem {
        var problem = Problem(
            .methodNotAllowed, "The method \(method.rawValue.prefix(20)) is not possible here. Use \(allowed).")
        problem.allowed = allowed
        return problem
    }

    /// The members of the problem, in JSON.
    var json: String {
        var entries: [String: Value] = [
            "type": "about:blank", "title": .string(status.reasonPhrase), "status": .int(status.code),
            "code": .string(error.code.rawValue), "detail": .string(error.message),
        ]
        if let source = error.source { entries["module"] = .string(source) }
        return Value.map(entries).json
    }

    func response(isHead: Bool) -> Response {
        var response = Response.text(json, status, type: "application/problem+json")
        if let retryAfter { response.headers[.retryAfter] = String(retryAfter) }
        if let allowed { response.headers[.allow] = allowed }
        if let challenge { response.headers[.wwwAuthenticate] = challenge }
        if closes { response.headers[.connection] = "close" }
        return isHead ? response.createHeadResponse() : response
    }
}

// MARK: Codes

/// The gateway's own codes, besides those of the host.
extension PluginError.Code {
    static let invalidRequest: Self = "invalidRequest"
    static let headerTooLarge: Self = "headerTooLarge"
    static let hostStarting: Self = "hostStarting"
    static let hostStopping: Self = "hostStopping"
    static let uriTooLong: Self = "uriTooLong"
    static let bodyTooLarge: Self = "bodyTooLarge"
    static let bodyTimeout: Self = "bodyTimeout"
    static let incompleteBody: Self = "incompleteBody"
    static let unsupportedMediaType: Self = "unsupportedMediaType"
    static let invalidHeader: Self = "invalidHeader"
    static let unauthorized: Self = "unauthorized"
    static let forbidden: Self = "forbidden"
    static let misdirected: Self = "misdirected"
    static let moduleBusy: Self = "moduleBusy"
    static let notRepresentable: Self = "notRepresentable"
    static let notAcceptable: Self = "notAcceptable"
    /// Codes of `RemoteModules`.
    static let circularCall: Self = "circularCall"
}

extension Problem {
    /// The status for each code. An error of a module has the status 422, unless the status here is 500 or more: what a
    /// module has failed to find, for instance, is not what the client asked for.
    static let statuses: [PluginError.Code: HTTPResponse.Status] = {
        var statuses: [PluginError.Code: HTTPResponse.Status] = [:]
        func add(_ status: HTTPResponse.Status, _ codes: PluginError.Code...) {
            for code in codes { statuses[code] = status }
        }
        add(
            .badRequest, .invalidURL, .missingParameter, .unknownParameter, .mistypedParameter, .invalidValue,
            .incompleteBody, .invalidHeader, .invalidRequest)
        add(.unauthorized, .unauthorized)
        add(.forbidden, .refused, .forbidden)
        add(
            .notFound, .noRoute, .notRemote, .unknownTarget, .unknownAction, .unknownService, .unknownModule,
            .unknownObject, .deadRoute, .noVersionKept)
        add(.methodNotAllowed, .methodNotAllowed)
        add(.notAcceptable, .notRepresentable, .notAcceptable)
        add(.requestTimeout, .bodyTimeout)
        add(.conflict, .conflict, .required)
        add(.gone, .generationRetired)
        add(.contentTooLarge, .bodyTooLarge)
        add(.uriTooLong, .uriTooLong)
        add(.unsupportedMediaType, .unsupportedMediaType)
        add(.requestHeaderFieldsTooLarge, .headerTooLarge)
        add(.misdirectedRequest, .misdirected)
        add(.tooManyRequests, .moduleBusy)
        add(.badGateway, .moduleCrashed)
        add(
            .serviceUnavailable, .hostStarting, .hostStopping, .hostStopped, .moduleUnavailable, .overloaded,
            .outOfResources, .cancelled, .interceptorMissing)
        add(.gatewayTimeout, .deadlineExceeded)
        add(
            .internalServerError, .actionFailed, .noReply, .invalidResult, .asynchronousAction, .blockingInTask,
            .recursionLimit, .circularCall, .circularWait, .instanceFailed, .asynchronousGuard)
        return statuses
    }()

    /// The reasons why a module cannot serve.
    private static let hindrances: Set<PluginError.Code> = [
        .untrusted, .quarantined, .permissionMissing, .invalidFile, .openFailed, .invalidDescription, .incompatible,
        .invalidManifest, .sealMismatch, .activationFailed, .missingRequirement, .wrongVersion, .circularRequirement,
        .requirementWaits, .invalidConfiguration,
    ]

    static func status(of error: PluginError) -> HTTPResponse.Status {
        let status = statuses[error.code]
        if error.source != nil, (status?.code ?? 400) < 500 { return .unprocessableContent }
        return status ?? .internalServerError
    }
}
