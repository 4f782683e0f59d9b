import HTTPTypes
import Hummingbird
import NIOCore

/// The files of the page. They are part of the program and contain no data, so they need no token.
enum PageFiles {
    struct File: Sendable {
        let type: String
        let content: ByteBuffer
    }

    /// The files by their paths.
    static let all: [String: File] = [
        "/": File(type: "text/html; charset=utf-8", content: ByteBuffer(bytes: PackageResources.index_html)),
        "/page/page.css": File(type: "text/css; charset=utf-8", content: ByteBuffer(bytes: PackageResources.page_css)),
        "/page/icon.svg": File(type: "image/svg+xml", content: ByteBuffer(bytes: PackageResources.icon_svg)),
        "/page/answers.js": script(PackageResources.answers_js),
        "/page/changes.js": script(PackageResources.changes_js),
        "/page/connection.js": script(PackageResources.connection_js),
        "/page/details.js": script(PackageResources.details_js),
        "/page/events.js": script(PackageResources.events_js),
        "/page/fleet.js": script(PackageResources.fleet_js),
        "/page/forms.js": script(PackageResources.forms_js),
        "/page/lists.js": script(PackageResources.lists_js),
        "/page/log.js": script(PackageResources.log_js),
        "/page/modules.js": script(PackageResources.modules_js),
        "/page/page.js": script(PackageResources.page_js),
        "/page/plots.js": script(PackageResources.plots_js),
        "/page/resolve.js": script(PackageResources.resolve_js),
        "/page/routes.js": script(PackageResources.routes_js),
        "/page/session.js": script(PackageResources.session_js),
        "/page/state.js": script(PackageResources.state_js),
        "/page/summary.js": script(PackageResources.summary_js),
        "/page/text.js": script(PackageResources.text_js),
    ]

    private static func script(_ bytes: [UInt8]) -> File {
        File(type: "text/javascript; charset=utf-8", content: ByteBuffer(bytes: bytes))
    }

    /// What the page may do: nothing but show itself and ask this gateway.
    static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

extension PluginGateway {
    /// Returns a file of the page; `nil` for other requests.
    func pageFile(
        _ target: RequestTarget, _ request: ReceivedRequest, _ connection: Connection?
    ) throws(Problem) -> Response? {
        guard configuration.page != .off, target.path == "/" || target.path.hasPrefix("/page/"),
            let file = PageFiles.all[target.path]
        else { return nil }
        if case .loopback = configuration.access { try checkLoopback(target, request, connection) }
        return try reading(request) {
            Response(
                status: .ok, headers: [.contentType: file.type, .cacheControl: "no-store"],
                body: ResponseBody(inPieces: file.content)
            ).ofPage
        }
    }
}

extension Response {
    /// The response with the headers that everything on the page has.
    var ofPage: Response {
        var response = self
        response.headers[.contentSecurityPolicy] = PageFiles.policy
        response.headers[.contentTypeOptions] = "nosniff"
        response.headers[.referrerPolicy] = "no-referrer"
        response.headers[.crossOriginOpenerPolicy] = "same-origin"
        response.headers[.crossOriginResourcePolicy] = "same-origin"
        return response
    }
}

extension HTTPField.Name {
    fileprivate static let referrerPolicy = Self("Referrer-Policy")!
    fileprivate static let crossOriginOpenerPolicy = Self("Cross-Origin-Opener-Policy")!
    fileprivate static let crossOriginResourcePolicy = Self("Cross-Origin-Resource-Policy")!
}
