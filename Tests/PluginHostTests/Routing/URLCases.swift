/// Whole URLs, in the form of `PathCases`. Patterns with and without a scheme.
enum URLCases {
    static let text = #"""
        -- scheme, host, path
        app://shop/lamp  app://shop/lamp  =
        app://shop/lamp  APP://shop/lamp  =
        APP://shop/lamp  app://shop/lamp  =
        app://shop/lamp  web://shop/lamp  -
        app://shop/lamp  app://SHOP/lamp  =
        app://Shop/lamp  app://shop/lamp  =
        app://shop/lamp  app://shop/LAMP  -
        app://shop/lamp  app://shop/lamp/  -
        app://shop/lamp  app://other/lamp  -
        app://shop/lamp  app:///shop/lamp  -
        app://shop  app://shop  =
        app://shop  app://shop/  -
        app://shop/  app://shop  -
        app://shop/  app://shop/  =
        app://shop/:item  app://shop/lamp  item=lamp
        app://shop/:item?  app://shop  item=∅
        app://shop/:item?  app://shop/  -
        app://shop{/:item}?  app://shop  item=∅
        app://shop{/:item}?  app://shop/lamp  item=lamp
        app://shop/*  app://shop/a/b  0=a/b
        app://shop/*  app://shop  -
        app:///lamp  app:///lamp  =
        app:///lamp  app://shop/lamp  =
        a+b-c.1://x  a+b-c.1://x  =
        app://shop/../lamp  app://shop/lamp  =
        app://shop/a/../b  app://shop/b  =
        app://shop/lamp  app://shop/x/../lamp  =
        app://shop/lamp  app://shop/../../lamp  =
        -- the fallback of a scheme
        app://  app://  =
        app://  app://shop/lamp?x=1  =
        app://  app:///  =
        app://  web://shop  -
        -- two slashes in the place of a scheme: any; without a host: any
        //shop/lamp  app://shop/lamp  =
        //shop/lamp  web://Shop/lamp  =
        //shop/:item  app://shop/lamp  item=lamp
        //shop/lamp  app://other/lamp  -
        ///lamp  app://shop/lamp  =
        ///lamp  app:///lamp  =
        ///lamp  app://shop/x/lamp  -
        ///:item  https://example.com/lamp?x=1#y  item=lamp
        ///*  app://shop/a/b  0=a/b
        ///*  app://shop  -
        //*.example.com/x  app://a.example.com/x  0=a
        //localhost:8080/x  app://localhost:8080/x  =
        //shop{/:item}?  web://shop  item=∅
        app:///lamp  app://shop/lamp  =
        -- where no scheme is configured, a URL has one if the pattern has one, and none if the pattern is a plain path
        app://shop/lamp  /lamp  ?
        app://shop/lamp  shop/lamp  ?
        app://shop/lamp  //shop/lamp  ?
        //shop/lamp  //shop/lamp  ?
        //shop/lamp  shop/lamp  ?
        shop/lamp  app://shop/lamp  ?
        /lamp  app://shop/lamp  ?
        /shop/lamp  //shop/lamp  -
        -- hosts are hosts
        app://*.example.com/x  app://a.b.example.com/x  0=a.b
        app://*.example.com/x  app://example.com/x  -
        app://:sub.example.com/x  app://www.example.com/x  sub=www
        app://:sub.example.com/x  app://a.b.example.com/x  -
        app://:Sub.example.com/x  app://WWW.example.com/x  Sub=www
        app://{:sub.}?example.com/x  app://example.com/x  sub=∅
        app://{:sub.}?example.com/x  app://www.example.com/x  sub=www
        app://{*.}?example.com/:a  app://w.example.com/x  0=w ; a=x
        app://(www|api).example.com/x  app://api.example.com/x  0=api
        app://(WWW|API).example.com/x  app://api.example.com/x  0=api
        app://:n(\D+)/x  app://abc/x  n=abc
        app://:n(\D+)/x  app://123/x  -
        app://:n(\d+)/x  app://123/x  n=123
        app://(sub.)?example.com/x  app://example.com/x  0=∅
        app://*/x  app://shop/x  0=shop
        app://*/*  app://shop/a/b  0=shop ; 1=a/b
        app://*/*  app:///a/b  0= ; 1=a/b
        app://(\d+)/(\d+)  app://1/2  0=1 ; 1=2
        app://:host/:path  app://shop/x  host=shop ; path=x
        app://:host  app://shop  host=shop
        app://bücher.example/x  app://b%C3%BCcher.example/x  =
        app://BÜCHER.example/x  app://bücher.example/x  =
        app://shop.example/x  app://shopxexample/x  -
        app://my_host-1/x  app://my_host-1/x  =
        -- ports belong to hosts
        app://localhost:8080/x  app://localhost:8080/x  =
        app://localhost:8080/x  app://localhost/x  -
        app://localhost/x  app://localhost:8080/x  -
        app://localhost\:8080/x  app://localhost:8080/x  =
        app://localhost\:(\d+)/x  app://localhost:8080/x  0=8080
        app://localhost\::port/x  app://localhost:8080/x  port=8080
        https://example.com:443/x  https://example.com/x  =
        https://example.com/x  https://example.com:443/x  =
        http://example.com/x  http://example.com:80/x  =
        http://example.com/x  http://example.com:443/x  -
        app://example.com/x  app://example.com:80/x  -
        app://[\:\:1]/x  app://[::1]/x  =
        app://[\:\:1]:8080/x  app://[::1]:8080/x  =
        app://[:address]/x  app://[::1]/x  address=::1
        app://[\:\:AB\::n]/x  app://[::ab:1]/x  n=1
        app://127.0.0.1/x  app://127.0.0.1/x  =
        -- query and fragment do not matter
        app://shop/:item  app://shop/lamp?x=1&y  item=lamp
        app://shop/:item  app://shop/lamp#red  item=lamp
        app://shop/:item  app://shop/lamp?x=1#red?y/z  item=lamp
        app://shop/:item  app://shop/lamp#a?b  item=lamp
        app://shop/:item  app://shop/lamp?a/b  item=lamp
        app://shop/:item  app://shop/lamp?  item=lamp
        app://shop/:item  app://shop/lamp#  item=lamp
        app://shop/:item  app://shop/lamp%3Fx%23y  item=lamp?x#y
        app://shop  app://shop?x=http://other/y  =
        app://shop  app://shop#x  =
        ///lamp  app://shop/lamp?&&x=1&  =
        -- decoding
        app://shop/:x  app://shop/a%2Fb  x=a/b
        app://shop/:x  app://shop/a+b  x=a+b
        app://shop/caf%C3%A9  app://shop/café  =
        app://shop/:x  app://shop/%e6%bc%a2  x=漢
        app://shop/漢  app://shop/漢  =
        app://shop/x  app://sh%6Fp/x  =
        app://shop/x  app://%53hop/x  =
        -- what is no URL
        app://shop/x  ""  ?
        app://shop/x  app:  ?
        app://shop/x  app:/shop/x  ?
        app://shop/x  app:shop/x  ?
        app://shop/x  app://shop/a%zz  ?
        app://shop/x  app://sh%op/x  ?
        app://shop/x  app://shop/%FF  ?
        app://shop/x  app://shop/%C0%80  ?
        app://shop/x  app://shop/a b  ?
        app://shop/x  app://ann@shop/x  ?
        app://shop/x  app://ann:secret@shop/x  ?
        app://shop/x  app://shop/x?%=1  ?
        app://shop/x  app://shop/x?a=%4  ?
        app://shop/x  app://shop/x?=1  ?
        -- what is no pattern
        :x://shop  app://shop  !2
        1a://shop  app://shop  !0
        ä://shop  app://shop  !0
        {https://}shop/x  app://shop  !0
        app://shop/:  app://shop/x  !11
        app://shop/:a/:a  app://shop/x  !14
        app://:a/:a  app://shop/x  !9
        app://sh{op/x  app://shop/x  !8
        app://{sub{.}}x/y  app://shop/x  !6
        app://shop/(?=x)  app://shop/x  !12
        app://shop/%zz  app://shop/x  !11
        app://sh%zp/x  app://shop/x  !8
        app://shop/x?y=1  app://shop/x?y=1  !12
        ://shop/x  app://shop/x  !0
        //  app://shop  !0
        //shop/:  app://shop  !7
        ///(  app://shop  !3
        """#

    /// Whole URLs and patterns of a program whose first scheme is “app”.
    static let withScheme = #"""
        -- a pattern without a scheme has the first one
        shop/lamp  app://shop/lamp  =
        shop/lamp  APP://Shop/lamp  =
        shop/lamp  web://shop/lamp  -
        shop/:item  app://shop/lamp  item=lamp
        shop/:item  app://other/lamp  -
        shop  app://shop  =
        /lamp  app://shop/lamp  =
        /lamp  app:///lamp  =
        /lamp  web://shop/lamp  -
        /shop/lamp  app://shop/lamp  -
        :host/:item  app://shop/lamp  host=shop ; item=lamp
        *  app://shop  0=shop
        localhost:8080/x  app://localhost:8080/x  =
        //shop/lamp  web://shop/lamp  =
        ///lamp  web://shop/lamp  =
        -- so has a URL
        app://shop/lamp  shop/lamp  =
        app://shop/lamp  //shop/lamp  =
        app://shop/lamp  SHOP/lamp  =
        app://shop/lamp  /shop/lamp  -
        app://shop/:item  shop/caf%C3%A9?x=1#y  item=café
        app://shop/:item  shop/x/../lamp  item=lamp
        app://shop/  shop/  =
        app://shop  shop  =
        app://shop  shop?x=a://b  =
        app://shop  shop#x  =
        app:///lamp  /lamp  =
        app:///lamp  ///lamp  =
        app://  shop/lamp  =
        app://  ?x=1  =
        app://home/homePage  home/homePage?page=1  =
        app://localhost:8080/x  //localhost:8080/x  =
        app://127.0.0.1:80/x  127.0.0.1:80/x  =
        web://shop/lamp  shop/lamp  -
        web://shop/lamp  //shop/lamp  -
        //shop/lamp  shop/lamp  =
        //shop/lamp  //shop/lamp  =
        -- and both
        home/homePage  home/homePage?page=1  =
        home/:page  home/homePage  page=homePage
        home/:page  //home/homePage  page=homePage
        /:page  /lamp  page=lamp
        shop{/:page}?  shop  page=∅
        -- what is no URL
        shop/x  ""  ?
        shop/x  shop:x  ?
        shop/x  ann@shop/x  ?
        shop/x  //ann@shop/x  ?
        shop/x  shop/a b  ?
        shop/x  sh%op/x  ?
        -- what is no pattern
        ""  shop  !0
        //  shop  !0
        shop/:  shop  !5
        sh{op/x  shop  !2
        """#
}
