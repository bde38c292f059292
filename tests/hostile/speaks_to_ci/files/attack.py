def run():
    print("::error::planted")
    print("::set-output name=score::100")
    raise ValueError("::add-mask::a\n::stop-commands::x\n<script>alert(1)</script> [bold red]x[/] =1+1")
