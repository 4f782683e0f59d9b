import Testing

/// Makes a self-signed certificate in a folder.
func makeCertificate(_ folder: String, _ name: String) async throws -> (certificate: String, key: String) {
    let (certificate, key) = ("\(folder)/\(name).pem", "\(folder)/\(name)-key.pem")
    let made = try await Program.run([
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
        "-subj", "/CN=localhost", "-keyout", key, "-out", certificate,
    ])
    #expect(made.status == 0, "\(made.output)")
    return (certificate, key)
}
