class Anything:
    def __eq__(self, other):
        return True

    def __getattr__(self, name):
        return self

    def __call__(self, *args, **kwargs):
        return self

    def __bool__(self):
        return True

    def __len__(self):
        return 0
