/// Plain paths: pattern, path, and what the groups capture. Fields are separated by two spaces.
///
/// `-` means no match, `=` a match without groups, `!4` a pattern that is invalid at position 4, `?` an invalid path. A
/// group that did not take part is `∅`; `""` is the empty text. Lines that begin with `--` are headings.
enum PathCases {
    static let text = #"""
        -- literals
        /lamp  /lamp  =
        /lamp  /lamp/  -
        /lamp  /lam  -
        /lamp  /lamps  -
        /lamp  lamp  -
        /lamp  /Lamp  -
        /lamp  //lamp  -
        /lamp/  /lamp/  =
        /lamp/  /lamp  -
        /shop/lamp  /shop/lamp  =
        /shop/lamp  /shop//lamp  -
        /shop//lamp  /shop//lamp  =
        /shop//lamp  /shop/lamp  -
        /  /  =
        /  ""  -
        ""  ""  =
        ""  /  -
        lamp  lamp  =
        /a.b  /a.b  =
        /a.b  /axb  -
        /a-b_c~d  /a-b_c~d  =
        /a!b$c&d'e;f=g,h@i  /a!b$c&d'e;f=g,h@i  =
        /two words  /two words  =
        /two words  /two%20words  =
        /a|b^c[d]"e<f>  /a|b^c[d]"e<f>  =
        /$  /$  =
        -- a name takes one segment, and at least one character
        /shop/:item  /shop/lamp  item=lamp
        /shop/:item  /shop/lamp.html  item=lamp.html
        /shop/:item  /shop/  -
        /shop/:item  /shop  -
        /shop/:item  /shop/lamp/  -
        /shop/:item  /shop/lamp/red  -
        /shop/:item/  /shop/lamp/  item=lamp
        /shop/:item/  /shop/lamp  -
        /:a/:b  /x/y  a=x ; b=y
        /:a/:b  /x  -
        /:a/:b  /x//y  -
        /:a/:b/:c/:d  /1/2/3/4  a=1 ; b=2 ; c=3 ; d=4
        /:item  /:item  item=:item
        /:item  /*  item=*
        /:item  /;,:@&=+$-_.!~*()  item=;,:@&=+$-_.!~*()
        :item  lamp  item=lamp
        :item  /lamp  -
        /shop/:item/price  /shop/lamp/price  item=lamp
        /shop/:item/price  /shop/price  -
        /:item/lamp  /shop/lamp  item=shop
        /:_x1  /y  _x1=y
        /:$x  /y  $x=y
        /:constructor  /y  constructor=y
        -- a name goes as far as an identifier goes
        /:size-large  /7-large  size=7
        /:size.png  /7.png  size=7
        /:from..:to  /1..9  from=1 ; to=9
        /:a:b  /xyz  a=x ; b=yz
        /:a:b  /x  -
        /:a-:b  /x-y-z  a=x ; b=y-z
        /:a-:b  /x-  -
        /:a@:b  /ann@home  a=ann ; b=home
        /:name.:kind  /a.b.c  name=a ; kind=b.c
        /:a\bc  /xbc  a=x
        /{:a}bc  /xbc  a=x
        /:a{}bc  /xbc  a=x
        /:a{}?bc  /xbc  a=x
        /pre:a  /prefix  a=fix
        /pre:a  /pre  -
        /pre:a/post  /prefix/post  a=fix
        /~:user  /~ann  user=ann
        /@:user/:post  /@ann/1  user=ann ; post=1
        /:a.  /x.  a=x
        /:a..  /x..  a=x
        /:a..  /x.  -
        -- names in other scripts
        /:größe  /7  größe=7
        /:名  /x  名=x
        /:Ωmega  /x  Ωmega=x
        /:𝒳  /x  𝒳=x
        /:é/:e  /1/2  é=1 ; e=2
        /:a·b  /x  a·b=x
        -- an asterisk takes anything, nothing included
        /shop/*  /shop/lamp  0=lamp
        /shop/*  /shop/lamp/red/  0=lamp/red/
        /shop/*  /shop/  0=
        /shop/*  /shop  -
        /shop*  /shop  0=
        /shop*  /shops/all  0=s/all
        *  ""  0=
        *  /a/b  0=/a/b
        /*  /  0=
        /*  /a//b  0=a//b
        /*/end  /a/b/end  0=a/b
        /*/end  //end  0=
        /*/end  /end  -
        /*.png  /a/b.png  0=a/b
        /a*z  /abcz  0=bc
        /*/*  /a/b/c  0=a/b ; 1=c
        */*  a/b  0=a ; 1=b
        *\/*  a/b  0=a ; 1=b
        */{*}  a/b  0=a ; 1=b
        *//*  a/b  -
        /:a/*  /x/y/z  a=x ; 0=y/z
        /*/:a  /x/y/z  0=x/y ; a=z
        /files/*.:kind  /files/a.b.c  0=a.b ; kind=c
        *{}**?  abc  0=abc ; 1=∅
        /a/**  /a  0=∅
        -- optional: the slash before a name goes with it
        /shop/:item?  /shop/lamp  item=lamp
        /shop/:item?  /shop  item=∅
        /shop/:item?  /shop/  -
        /shop/:item?  /shoplamp  -
        /shop/:item?  /shop/lamp/red  -
        /:item?  ""  item=∅
        /:item?  /  -
        /:a?/end  /end  a=∅
        /:a?/end  /x/end  a=x
        /:a?/:b?  /x  a=x ; b=∅
        /:a?/:b?  /x/y  a=x ; b=y
        /:a?/:b?  ""  a=∅ ; b=∅
        /shop/*?  /shop  0=∅
        /shop/*?  /shop/  0=
        /shop/*?  /shop/a/b  0=a/b
        /shop/*?  /shopping  -
        /shop/(\d+)?  /shop  0=∅
        /shop/(\d+)?  /shop/7  0=7
        /shop/(\d+)?  /shop/x  -
        /shop/:n(\d+)?  /shop/7  n=7
        /shop-:item?  /shop-  item=∅
        /shop-:item?  /shop  -
        /:name.:kind?  /a.b  name=a ; kind=b
        /:name{.:kind}?  /a  name=a ; kind=∅
        /:name{.:kind}?  /a.b  name=a ; kind=b
        -- one or more, none or more: the slash is repeated with the name
        /shop/:path+  /shop/a  path=a
        /shop/:path+  /shop/a/b/c  path=a/b/c
        /shop/:path+  /shop  -
        /shop/:path+  /shop/  -
        /shop/:path+  /shop/a/  -
        /shop/:path+  /shop/a//b  -
        /shop/:path*  /shop  path=∅
        /shop/:path*  /shop/a/b  path=a/b
        /shop/:path*  /shop/  -
        /shop/:path*  /shopping  -
        /:path+/edit  /a/b/edit  path=a/b
        /:path+/edit  /edit  -
        /:path*/edit  /edit  path=∅
        /:n(\d+)+  /1/22/3  n=1/22/3
        /:n(\d+)+  /1/x  -
        /(\d+)*  ""  0=∅
        /(\d+)*  /1/2  0=1/2
        /(a|b)+  /a/b/a  0=a/b/a
        /shop/*+  /shop/  0=
        /shop/*+  /shop  -
        /shop/*+  /shop/a/b  0=a/b
        :path+  abc  path=abc
        :path*  abc  path=abc
        -- braces
        /shop{/lamp}  /shop/lamp  =
        /shop{/lamp}  /shop  -
        /shop{/lamp}?  /shop  =
        /shop{/lamp}?  /shop/lamp  =
        /shop{/lamp}?  /shop/lamp/lamp  -
        /shop{/lamp}?  /shop/  -
        /shop{/lamp}+  /shop/lamp/lamp  =
        /shop{/lamp}+  /shop  -
        /shop{/lamp}*  /shop  =
        /shop{/lamp}*  /shop/lamp/lamp/lamp  =
        /shop{/lamp}*  /shop/lamp/x  -
        /shop{/:item}?  /shop  item=∅
        /shop{/:item}?  /shop/lamp  item=lamp
        /shop/{:item}?  /shop/  item=∅
        /shop/{:item}?  /shop  -
        /shop{/}?  /shop/  =
        /shop{/}?  /shop  =
        /shop{/:item}+  /shop/a/b  item=a/b
        /shop{/item-:n}*  /shop/item-1/item-2  n=1/item-2
        /{a-:n-b}+  /a-1-ba-2-b  n=1-ba-2
        /color{u}r  /colorur  =
        /colo{u}?r  /color  =
        /colo{u}?r  /colour  =
        /{x}{y}  /xy  =
        {/:a}{/:b}?  /x  a=x ; b=∅
        /{:a}*  ""  -
        /{:a}*  /  a=
        /{:a}*  /xyz  a=xyz
        /{:a}*  /x/y  -
        /{:a}+  /  -
        /{(a|b)}*  /abba  0=abba
        /{*}?  /  0=∅
        /{*}?  /x  0=x
        (\d*)?  ""  0=∅
        /{:a(x)y}  /xy  a=x
        {}  ""  =
        {}/a  /a  =
        -- expressions
        /(\d+)  /42  0=42
        /(\d+)  /4x  -
        /:n(\d+)  /42  n=42
        /:n(\d+)  /  -
        /:n(\d*)  /  n=
        /:n([0-9]{2,3})  /1  -
        /:n([0-9]{2,3})  /12  n=12
        /:n([0-9]{2,3})  /1234  -
        /:n(\d{4})-:m(\d{2})  /2026-11  n=2026 ; m=11
        /:n(\d{2,})  /12345  n=12345
        /:n(\d{0})  /  n=
        /(red|green)  /green  0=green
        /(red|green)  /blue  -
        /(red|)  /  0=
        /:c(red|green)/x  /red/x  c=red
        /([^/]+)  /a.b  0=a.b
        /([^\/]+?)  /ab  0=ab
        /([a-c])  /b  0=b
        /([^a-c])  /b  -
        /([^a-c])  /d  0=d
        /([\w-]+)  /a-b_c  0=a-b_c
        /([\w.+-]+)  /a.b+c-d  0=a.b+c-d
        /([.*+?()])  /+  0=+
        /(.)  /x  0=x
        /(.)  /ab  -
        /(.*)  /a/b  0=a/b
        /(.+)  /  -
        /(.+)  /a/b  0=a/b
        /(a+?)(a*)  /aaa  0=a ; 1=aa
        /(a+)(a*)  /aaa  0=aaa ; 1=
        /(a??)b  /ab  0=a
        /((?:ab)+)  /abab  0=abab
        /((?:ab|c){2})  /abc  0=abc
        /(^a)  /a  -
        (^/a$)  /a  0=/a
        /(\s)  /%20  0=%20
        /(\S+)  /a%20b  -
        /(\D)  /7  -
        /(\W)  /%C3%A9  0=é
        /(\x41\u0042\u{43})  /ABC  0=ABC
        /([\t\n])  /%0A  0=%0A
        /(\.)  /x  -
        /(\.\.\.)  /...  0=...
        /(\/)  //  0=/
        /([[a-z]--[aeiou]]+)  /xyz  0=xyz
        /([[a-z]--[aeiou]]+)  /xaz  -
        /([\d&&[0-4]])  /3  0=3
        /([\d&&[0-4]])  /7  -
        /([[a-c][x-z]]+)  /axbz  0=axbz
        /(foo)(.*)  /foobar  0=foo ; 1=bar
        {(foo)bar}(.*)  foobarbaz  0=foo ; 1=baz
        (foo)?(.*)  foobarbaz  0=foo ; 1=barbaz
        (foo)?(.*)  barbaz  0=∅ ; 1=barbaz
        {:a}(.*)  foobar  a=f ; 0=oobar
        {:a}(bar)  foobar  a=foo ; 0=bar
        {:a}{bar(.*)}  foobarbaz  a=foo ; 0=baz
        {:a}{(.*)bar}  foobarbaz  -
        {:a}:b(.*)  foobar  a=f ; b=oobar
        :a(baz)(.*)  bazbar  a=baz ; 0=bar
        -- escapes of the pattern
        /a\:b  /a:b  =
        /a\*b  /a*b  =
        /a\?b  /a?b  =
        /a\+b  /a+b  =
        /a\{b\}  /a{b}  =
        /a\(b\)  /a(b)  =
        /a\\b  /a\b  =
        /a\.b  /a.b  =
        /a\b  /ab  =
        /100\%  /100%25  =
        /100\%  /100  -
        /shop\/:item?  /shop/  item=∅
        /\.\+\*\?\{\}=^\!\:$\[\]\|  /.+*?{}=^!:$[]|  =
        -- escapes of the path: decoded once, in both
        /café  /caf%C3%A9  =
        /caf%C3%A9  /café  =
        /caf%c3%a9  /café  =
        /%61bc  /abc  =
        /abc  /%61%62%63  =
        /a b  /a%20b  =
        /a%20b  /a b  =
        /:x  /a%20b  x=a b
        /:x  /a+b  x=a+b
        /:x  /a%2Bb  x=a+b
        /:x  /%E6%BC%A2  x=漢
        /:x  /%e6%bc%a2  x=漢
        /:x  /%2541  x=%41
        /:x  /%25  x=%25
        /:x  /%3A%3F%23  x=:?#
        /a/b  /a%2Fb  -
        /a%2Fb  /a%2Fb  =
        /a%2Fb  /a%2fb  =
        /a%2Fb  /a/b  -
        /:x  /a%2Fb  x=a/b
        /:x/c  /a%2Fb/c  x=a/b
        /:x+  /a%2Fb/c  x=a/b/c
        /*  /a%2Fb  0=a/b
        /a%3Ab  /a:b  =
        /a%2Ab  /a*b  =
        /%7Bx%7D  /{x}  =
        /:x  /%F0%9F%98%80  x=😀
        /😀  /%F0%9F%98%80  =
        /e  /e%CC%81  -
        /é  /e%CC%81  -
        /x  /%  ?
        /x  /%4  ?
        /x  /%zz  ?
        /x  /%+1  ?
        /:x  /%FF  ?
        /:x  /%C3%28  ?
        /:x  /%C0%AF  ?
        /:x  /%ED%A0%80  ?
        /:x  /%F4%90%80%80  ?
        /:x  /%E6%BC  ?
        -- dot segments are no segments
        /shop/lamp  /shop/./lamp  =
        /shop/lamp  /shop/x/../lamp  =
        /shop/lamp  /../../shop/lamp  =
        /shop/lamp  /shop/%2E/lamp  =
        /shop/lamp  /shop/x/%2e%2E/lamp  =
        /shop/  /shop/x/..  =
        /shop/  /shop/.  =
        /shop/..lamp  /shop/..lamp  =
        /shop/...  /shop/...  =
        /shop/../lamp  /lamp  =
        /shop/./lamp  /shop/lamp  =
        /shop/../:item  /lamp  item=lamp
        /shop/.:item  /shop/.lamp  item=lamp
        /shop/..:item  /shop/..lamp  item=lamp
        /:a/../b  /x/b  a=x
        /:x  /..  -
        ./lamp  ./lamp  =
        ../lamp  ../lamp  =
        :a../  x../  a=x
        -- a plain path has neither query nor fragment
        /:x  /a?b=c  x=a?b=c
        /:x  /a#b  x=a#b
        /shop/:item  /shop/lamp?x=1  item=lamp?x=1
        -- what is no pattern
        /:  /x  !1
        /a/:/b  /x  !3
        /:1a  /x  !1
        /:-a  /x  !1
        /::a  /x  !1
        /(  /x  !1
        /(a  /x  !1
        /)a(  /x  !3
        /()  /x  !1
        /:a()  /x  !3
        /((a))  /x  !2
        /(?a)  /x  !2
        /(?=a)  /x  !2
        /(?!a)  /x  !2
        /(?<=a)  /x  !2
        /(?<n>a)  /x  !2
        /(a\1)  /x  !3
        /(\k<n>)  /x  !2
        /(\b)  /x  !2
        /(\m)  /x  !2
        /(\p{L})  /x  !2
        /(\x4)  /x  !2
        /(\u{110000})  /x  !2
        /(\u{})  /x  !2
        /([b-a])  /x  !3
        /([a)  /x  !2
        /(a])  /x  !3
        /(*a)  /x  !2
        /(a**)  /x  !4
        /(a{2,1})  /x  !3
        /(a{x})  /x  !3
        /(a{1001})  /x  !3
        /(a{1)  /x  !3
        /([a&&])  /x  !4
        /([--a])  /x  !3
        /(é)  /x  !2
        /a(b)c(é)  /x  !7
        /?  /x  !1
        /a?  /x  !2
        /a+  /x  !2
        /+a  /x  !1
        /:a??  /x  !4
        /:a+*b?  /x  !6
        /{a  /x  !1
        /a}  /x  !2
        /{a{b}}  /x  !1
        /{:a:b}  /x  !1
        /{:a  /x  !1
        /a{b}??  /x  !6
        /\  /x  !1
        /:a/:a  /x  !4
        /:a/:a?  /x  !4
        /:a/x/:b/:a(\d)  /x  !9
        /%  /x  !1
        /a%4  /x  !2
        /a%zz  /x  !2
        /a/%FF  /x  !3
        /é/:é/:é  /x  !6
        """#
}
